// The controllers of training-operator for PyTorchJob and TFJob. The stock command has those of four
// more kinds, and a validating webhook, which changes no pod but waits for certificates.
package main

import (
	"flag"

	kubeflow "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"github.com/kubeflow/training-operator/pkg/config"
	"github.com/kubeflow/training-operator/pkg/controller.v1/common"
	"github.com/kubeflow/training-operator/pkg/controller.v1/pytorch"
	"github.com/kubeflow/training-operator/pkg/controller.v1/tensorflow"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/manager/signals"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func main() {
	kubeconfig := flag.String("kube-config", "", "how to reach the API server")
	flag.Parse()
	log.SetLogger(klog.Background())
	if err := run(*kubeconfig); err != nil {
		klog.Exit(err)
	}
}

// run acts on every PyTorchJob and TFJob of the cluster for as long as the process lives.
func run(kubeconfig string) error {
	reach, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	reach.QPS = -1 // no limit
	// The flags of the stock command.
	config.Config.PyTorchInitContainerImage = config.PyTorchInitContainerImageDefault
	config.Config.PyTorchInitContainerMaxTries = config.PyTorchInitContainerMaxTriesDefault
	if err := kubeflow.AddToScheme(scheme.Scheme); err != nil {
		return err
	}
	controllers, err := manager.New(reach, manager.Options{
		Scheme:  scheme.Scheme,
		Metrics: server.Options{BindAddress: "0"},
	})
	if err != nil {
		return err
	}
	alone := common.GenNonGangSchedulerSetupFunc()
	if err := pytorch.NewReconciler(controllers, alone).SetupWithManager(controllers, 1); err != nil {
		return err
	}
	if err := tensorflow.NewReconciler(controllers, alone).SetupWithManager(controllers, 1); err != nil {
		return err
	}
	return controllers.Start(signals.SetupSignalHandler())
}
