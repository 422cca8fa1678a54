"""Rules of runs, and of the checks that they report on."""
