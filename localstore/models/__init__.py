"""The cache of language models, which all SVC_HOMEs of a user share: names, model files (blobs), and data
from their headers."""
