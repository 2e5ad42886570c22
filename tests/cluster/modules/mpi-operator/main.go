// The controller of mpi-operator. The stock command also links the API server's libraries, for a
// leader election and a health check of which a single process beside a test's cluster has no use,
// and they are half of what there is to compile.
package main

import (
	"flag"

	"github.com/kubeflow/mpi-operator/pkg/client/clientset/versioned"
	kubeflow "github.com/kubeflow/mpi-operator/pkg/client/clientset/versioned/scheme"
	"github.com/kubeflow/mpi-operator/pkg/client/informers/externalversions"
	"github.com/kubeflow/mpi-operator/pkg/controller"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog"
)

func main() {
	klog.InitFlags(nil)
	kubeconfig := flag.String("kubeConfig", "", "how to reach the API server")
	flag.Parse()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err == nil {
		err = run(config)
	}
	klog.Exit(err)
}

// run acts on every MPIJob of the cluster for as long as the process lives.
func run(config *rest.Config) error {
	config.QPS, config.Burst = 50, 100
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	jobs, err := versioned.NewForConfig(config)
	if err != nil {
		return err
	}
	// What an event is about is looked up here.
	if err := kubeflow.AddToScheme(scheme.Scheme); err != nil {
		return err
	}
	theirs := informers.NewSharedInformerFactory(client, 0)
	ours := externalversions.NewSharedInformerFactory(jobs, 0)
	core := theirs.Core().V1()
	made, err := controller.NewMPIJobController(
		client, jobs, nil, nil,
		core.ConfigMaps(), core.Secrets(), core.Services(), theirs.Batch().V1().Jobs(), core.Pods(),
		theirs.Scheduling().V1().PriorityClasses(), ours.Kubeflow().V2beta1().MPIJobs(),
		"", "", // every namespace; no gangs
	)
	if err != nil {
		return err
	}
	forever := make(chan struct{})
	theirs.Start(forever)
	ours.Start(forever)
	return made.Run(2, forever)
}
