"""Pulls models and adds them to the models of this machine."""
