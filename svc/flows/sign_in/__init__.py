"""Signs in to servers, and registers the device key that signs updates and seals."""
