"""Assets of releases: uploads files, and downloads into a folder."""
