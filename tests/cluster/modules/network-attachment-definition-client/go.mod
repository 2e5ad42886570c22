module tests/cluster/network-attachment-definition-client

go 1.26.0

require github.com/k8snetworkplumbingwg/network-attachment-definition-client v1.7.5
