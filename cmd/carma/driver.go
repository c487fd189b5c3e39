package main

import (
	"os"
	"path/filepath"

	"carma/configs"
	"carma/containers"
	"carma/containers/containerd"
	"carma/containers/docker"
)

// openDriver opens what runs the containers. Nothing is sent yet.
func openDriver(config configs.Config) (containers.Driver, error) {
	if config.Driver == "containerd" {
		return openContainerd(config)
	}
	return docker.New(docker.Options{Host: config.DockerHost, Network: config.Network})
}

func openContainerd(config configs.Config) (*containerd.Driver, error) {
	if os.Geteuid() != 0 {
		return nil, usagef("run it as root, or use --driver docker", "driver containerd: only root can use containerd")
	}
	if config.Attach == string(containers.AttachDeviceRequest) {
		return nil, usagef("write --attach auto, cdi or runtime", "--attach %s: containerd has no device requests", config.Attach)
	}
	dir, err := filepath.Abs(filepath.Join(config.DataDir, "containerd"))
	if err != nil {
		return nil, err
	}
	d, err := containerd.New(containerd.Options{
		Address: config.ContainerdAddress, Namespace: config.ContainerdNamespace, Network: config.Network, Dir: dir,
	})
	if err != nil {
		return nil, usagef("", "%v", err)
	}
	return d, nil
}
