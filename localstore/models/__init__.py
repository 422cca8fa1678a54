"""The cache of models that all SVC_HOMEs of a user share: names, blobs, and data from their headers."""
