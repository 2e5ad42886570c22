// Read a configuration of the RDMA shared device plugin as the plugin does, and apply its rules.
//
// The plugin itself first asks the kernel for the RDMA subsystem, so on a machine without one it
// ends before it looks at its configuration.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"

	"github.com/Mellanox/k8s-rdma-shared-dev-plugin/pkg/resources"
	"github.com/Mellanox/k8s-rdma-shared-dev-plugin/pkg/types"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: rdma-shared-dev-plugin-config FILE")
		os.Exit(2)
	}
	manager := resources.NewResourceManager(os.Args[1], false)
	for _, step := range []func() error{manager.ReadConfig, manager.ValidateConfigs, onlyKnownFields} {
		if err := step(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// The plugin passes over a field that it does not know: a misspelled selector would select nothing.
func onlyKnownFields() error {
	raw, err := os.ReadFile(os.Args[1])
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	return decoder.Decode(&types.UserConfigList{})
}
