"""What a machine and its libraries say about RDMA; nothing here knows a pod or Kubernetes."""
