"""The cache of language models, which all SVC_HOMEs of a user share. It has names, model files (blobs), and
data from the headers of the files."""
