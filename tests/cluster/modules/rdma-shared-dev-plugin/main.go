// Read a configuration of the RDMA shared device plugin as the plugin does, and apply its rules.
//
// The plugin itself first asks the kernel for the RDMA subsystem, so on a machine without one it
// ends before it looks at its configuration.
package main

import (
	"fmt"
	"os"

	"github.com/Mellanox/k8s-rdma-shared-dev-plugin/pkg/resources"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: rdma-shared-dev-plugin-config FILE")
		os.Exit(2)
	}
	manager := resources.NewResourceManager(os.Args[1], false)
	for _, step := range []func() error{manager.ReadConfig, manager.ValidateConfigs} {
		if err := step(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
