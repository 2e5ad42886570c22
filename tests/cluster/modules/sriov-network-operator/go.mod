module tests/cluster/sriov-network-operator

go 1.26.0

require github.com/k8snetworkplumbingwg/sriov-network-operator v1.5.0
