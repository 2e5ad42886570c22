module tests/cluster/network-operator

go 1.26.0

require github.com/Mellanox/network-operator v1.4.0
