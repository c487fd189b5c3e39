package configs

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"carma/mapper/units"
)

// hostKeys are about the daemon, the GPUs, the engine, estimates and what is kept.
var hostKeys = []key{
	{"socket", "path of the daemon's unix `socket`", func(c *Config) any { return &c.Socket }, func(c *Config) error {
		return validSocket(c.Socket)
	}},
	{"web", "where the page is served: auto (on a socket of its own), 127.0.0.1:PORT (also there) or off", func(c *Config) any { return &c.Web }, func(c *Config) error {
		_, err := PagePort(c.Web)
		return err
	}},
	{"data-dir", "`folder` of the journal and the tasks' output", func(c *Config) any { return &c.DataDir }, func(c *Config) error {
		return absolute(c.DataDir)
	}},
	{"journal-reserve", "spare room on the data folder's disk; it is given up when the disk is full, so that tasks can still be stopped and removed; 0: none", func(c *Config) any { return &c.JournalReserve }, func(c *Config) error {
		if c.JournalReserve < 0 {
			return fmt.Errorf("%d is negative; write for example 16M, or 0 for none", c.JournalReserve)
		}
		return nil
	}},
	{"gpus", "where the GPUs come from: auto, nvml, nvml:GPU,..., sim:SERVER or cluster", func(c *Config) any { return &c.GPUs }, func(c *Config) error {
		return validSource(c.GPUs)
	}},
	{"speed", "simulated time per clock time, with sim: only", func(c *Config) any { return &c.Speed }, func(c *Config) error {
		if !(c.Speed > 0 && c.Speed <= 100_000) {
			return fmt.Errorf("%v is not above 0 and at most 100000", c.Speed)
		}
		return nil
	}},
	{"sample-every", "`time` between two readings of the GPUs", func(c *Config) any { return &c.SampleEvery }, func(c *Config) error {
		if c.SampleEvery < 10*time.Millisecond {
			return fmt.Errorf("%s is less than 10ms; write for example 1s", c.SampleEvery)
		}
		return nil
	}},
	{"activity", "how readings of activity become one figure: mean, or risk (high readings count more)", func(c *Config) any { return &c.Activity }, func(c *Config) error {
		return oneOf("activity", c.Activity, Activities)
	}},
	{"dcgm-exporter", "`URL` of a dcgm-exporter's page, for the activity of GPUs before Hopper", func(c *Config) any { return &c.DCGMExporter }, func(c *Config) error {
		return validPage(c.DCGMExporter)
	}},
	{"metrics", "TCP `address` of the page for Prometheus, for example 127.0.0.1:9810, or off; it is on the socket in any case", func(c *Config) any { return &c.Metrics }, func(c *Config) error {
		return validAddress(c.Metrics)
	}},
	{"metrics-names", "figures of single tasks and users on that page, with their names", func(c *Config) any { return &c.MetricsNames }, nil},

	{"notify", "`file` of the administrator's channels for messages: auto (root's daemon: /etc/carma/notify.yaml, if it is there), a path, or off", func(c *Config) any { return &c.Notify }, func(c *Config) error {
		if c.Notify == "auto" || c.Notify == "off" {
			return nil
		}
		return absolute(c.Notify)
	}},

	{"driver", "what runs the containers: docker, containerd or kubernetes", func(c *Config) any { return &c.Driver }, func(c *Config) error {
		return oneOf("driver", c.Driver, Drivers)
	}},
	{"docker-host", "`address` of the Docker engine; empty: DOCKER_HOST, else Docker's default", func(c *Config) any { return &c.DockerHost }, nil},
	{"containerd-address", "path of containerd's `socket`; empty: CONTAINERD_ADDRESS, else containerd's default", func(c *Config) any { return &c.ContainerdAddress }, func(c *Config) error {
		if c.ContainerdAddress == "" {
			return nil
		}
		return validSocket(c.ContainerdAddress)
	}},
	{"containerd-namespace", "containerd's `namespace` for images and containers", func(c *Config) any { return &c.ContainerdNamespace }, func(c *Config) error {
		if !namespaceName().MatchString(c.ContainerdNamespace) || len(c.ContainerdNamespace) > 76 {
			return fmt.Errorf("%q is not the name of a namespace: letters, digits, and single dots, dashes and underscores between them; write for example carma", c.ContainerdNamespace)
		}
		return nil
	}},
	{"kubeconfig", "`file` that tells how to reach the cluster; empty: as kubectl finds it, or as a pod of the cluster does", func(c *Config) any { return &c.Kubeconfig }, func(c *Config) error {
		if c.Kubeconfig == "" {
			return nil
		}
		return absolute(c.Kubeconfig)
	}},
	{"kubernetes-namespace", "the `namespace` of the daemon, and of tasks that name no other; empty: the kubeconfig's", func(c *Config) any { return &c.KubernetesNamespace }, func(c *Config) error {
		if c.KubernetesNamespace != "" && !kubernetesName().MatchString(c.KubernetesNamespace) {
			return fmt.Errorf("%q is not the name of a namespace: small letters, digits and dashes, at most 63; write for example carma", c.KubernetesNamespace)
		}
		return nil
	}},
	{"kubernetes-namespaces", "further `namespaces` that tasks may run in; * is all", func(c *Config) any { return &c.KubernetesNamespaces }, func(c *Config) error {
		for _, n := range c.KubernetesNamespaces {
			if n != "*" && !kubernetesName().MatchString(n) {
				return fmt.Errorf("%q is not the name of a namespace: small letters, digits and dashes, at most 63; write for example lab, or * for all", n)
			}
		}
		return nil
	}},
	{"kubernetes-admins", "`names` of users of the cluster, and with @ of groups, who may do what admins may", func(c *Config) any { return &c.KubernetesAdmins }, func(c *Config) error {
		for _, n := range c.KubernetesAdmins {
			if strings.TrimPrefix(n, "@") == "" {
				return fmt.Errorf("%q is no name; write for example ann@example.org, or @lab-admins for a group", n)
			}
		}
		return nil
	}},
	{"listen", "TCP `address` at which users of the cluster reach the daemon over TLS, for example 0.0.0.0:7443, or off", func(c *Config) any { return &c.Listen }, func(c *Config) error {
		return validAddress(c.Listen)
	}},
	{"listen-certificate", "`file` with the certificate of that address, in PEM; empty: the daemon makes one", func(c *Config) any { return &c.ListenCertificate }, func(c *Config) error {
		return absoluteOrNone(c.ListenCertificate)
	}},
	{"listen-key", "`file` with the key of that certificate, in PEM", func(c *Config) any { return &c.ListenKey }, func(c *Config) error {
		return absoluteOrNone(c.ListenKey)
	}},
	{"listen-names", "further host `names` and addresses of that address, for the certificate that the daemon makes", func(c *Config) any { return &c.ListenNames }, nil},
	{"token-audience", "`audience` that the tokens of users must be meant for; empty: the cluster's apiserver", func(c *Config) any { return &c.TokenAudience }, nil},
	{"kubernetes-folders", "`folders` that are the same on all nodes and here, which tasks may mount", func(c *Config) any { return &c.KubernetesFolders }, func(c *Config) error {
		for _, f := range c.KubernetesFolders {
			if err := absolute(f); err != nil {
				return err
			}
		}
		return nil
	}},
	{"network", "the containers' `network`; empty: the engine's default", func(c *Config) any { return &c.Network }, nil},
	{"attach", "how containers get their GPUs: auto, device-request, runtime, cdi or simulated", func(c *Config) any { return &c.Attach }, func(c *Config) error {
		return oneOf("attachment", c.Attach, Attachments)
	}},
	{"processors", "where tasks with GPUs run: any, or near: only at the NUMA node of their GPUs", func(c *Config) any { return &c.Processors }, func(c *Config) error {
		return oneOf("choice of processors", c.Processors, ProcessorChoices)
	}},
	{"suspend", "whether running tasks can be suspended, where the driver can: auto, here (they come back to the same GPU), move (or to another of the same model) or off", func(c *Config) any { return &c.Suspend }, func(c *Config) error {
		return oneOf("choice", c.Suspend, SuspendChoices)
	}},
	{"pull", "when images are fetched: missing, always or never", func(c *Config) any { return &c.Pull }, func(c *Config) error {
		return oneOf("pull rule", c.Pull, PullRules)
	}},
	{"environment", "software and GPU that memory estimates assume; empty: chosen by the GPUs; carma estimate --help lists them", func(c *Config) any { return &c.Environment }, nil},
	{"probe", "tasks that are probed before they are queued: asked (those with --probe), unknown (also those of which nothing is known) or never", func(c *Config) any { return &c.Probe }, func(c *Config) error {
		return oneOf("choice", c.Probe, Probes)
	}},
	{"probe-timeout", "`time` a probe may take", func(c *Config) any { return &c.ProbeTimeout }, func(c *Config) error {
		if c.ProbeTimeout < time.Second {
			return fmt.Errorf("%s is less than 1s; write for example 2m", c.ProbeTimeout)
		}
		return nil
	}},
	{"probe-memory", "host `memory` a probe may use", func(c *Config) any { return &c.ProbeMemory }, func(c *Config) error {
		if c.ProbeMemory < 64*units.MiB {
			return fmt.Errorf("%s is too little to start a program in; write for example 8G", c.ProbeMemory)
		}
		return nil
	}},
	{"mps", "sharing by NVIDIA's Multi-Process Service: auto (as user, where it is installed and works), off, user (each user's tasks among themselves) or shared (all tasks)", func(c *Config) any { return &c.MPS }, func(c *Config) error {
		return oneOf("choice", c.MPS, MPSGroups)
	}},
	{"mps-control", "the MPS control `program`", func(c *Config) any { return &c.MPSControl }, func(c *Config) error {
		if c.MPSControl == "" {
			return errors.New("no program named; the NVIDIA driver's is nvidia-cuda-mps-control")
		}
		return nil
	}},
	{"mps-dir", "`folder` of the MPS control daemons", func(c *Config) any { return &c.MPSDir }, func(c *Config) error {
		if len(c.MPSDir) > 60 {
			return fmt.Errorf("%s is too long: a socket is made in it; write for example /run/carma/mps", c.MPSDir)
		}
		return absolute(c.MPSDir)
	}},
	{"mps-threads", "most SMs a task may use at a time under MPS, in percent; 0: no limit", func(c *Config) any { return &c.MPSThreads }, func(c *Config) error {
		if c.MPSThreads < 0 || c.MPSThreads > 100 {
			return fmt.Errorf("%d is not between 0 and 100", c.MPSThreads)
		}
		return nil
	}},
	{"mps-memory-limit", "under MPS, refuse a task more memory than its grant", func(c *Config) any { return &c.MPSMemoryLimit }, nil},
	{"mps-ipc", "the IPC namespace of tasks under MPS: private, or host if the driver needs it", func(c *Config) any { return &c.MPSIPC }, func(c *Config) error {
		return oneOf("choice", c.MPSIPC, MPSIPCs)
	}},
	{"memory-limit", "limit of the GPU memory of tasks that may share: auto (the driver's if there is one, and MPS's if MPS is on), driver (the daemon does not start without the driver's), mps (only MPS's) or off", func(c *Config) any { return &c.MemoryLimit }, func(c *Config) error {
		return oneOf("choice", c.MemoryLimit, MemoryLimits)
	}},
	{"memory-burst", "under the driver's limit, let a task use all memory that is free on its GPUs at its start, not only its grant", func(c *Config) any { return &c.MemoryBurst }, nil},
	{"nvidia-smi", "the `program` that sets the driver's memory limits", func(c *Config) any { return &c.NVIDIASMI }, func(c *Config) error {
		if c.NVIDIASMI == "" {
			return errors.New("no program named; the NVIDIA driver's is nvidia-smi")
		}
		return nil
	}},
	{"memory-caps", "settings of frameworks for their GPU memory beside other tasks: growth (take memory as needed), fractions (also stop at the grant) or off", func(c *Config) any { return &c.MemoryCaps }, func(c *Config) error {
		return oneOf("choice", c.MemoryCaps, MemoryCaps)
	}},
	{"stop-grace", "`time` between a task's stop signal and its kill", func(c *Config) any { return &c.StopGrace }, func(c *Config) error {
		return notNegative(c.StopGrace)
	}},
	{"log-bytes", "output kept per attempt", func(c *Config) any { return &c.LogBytes }, func(c *Config) error {
		if c.LogBytes < units.KiB {
			return fmt.Errorf("%d bytes is too small; write for example 64M", c.LogBytes)
		}
		return nil
	}},
	{"output-dir", "`folder` of the tasks' output; empty: folder logs of data-dir", func(c *Config) any { return &c.OutputDir }, func(c *Config) error {
		if c.OutputDir == "" {
			return nil
		}
		return absolute(c.OutputDir)
	}},
	{"output-task", "output kept per task; 0: four times log-bytes", func(c *Config) any { return &c.OutputTask }, func(c *Config) error {
		return output(c.OutputTask)
	}},
	{"output-user", "output kept per user; 0: half of output-total", func(c *Config) any { return &c.OutputUser }, func(c *Config) error {
		return output(c.OutputUser)
	}},
	{"output-total", "output kept of all tasks; 0: a tenth of the disk", func(c *Config) any { return &c.OutputTotal }, func(c *Config) error {
		return output(c.OutputTotal)
	}},
	{"output-free", "disk space that output leaves free; 0: a twentieth of the disk, at most 1G", func(c *Config) any { return &c.OutputFree }, nil},
	{"keep-tasks", "number of finished tasks that are kept; 0: all", func(c *Config) any { return &c.KeepTasks }, func(c *Config) error {
		if c.KeepTasks < 0 {
			return fmt.Errorf("%d is negative; write for example 100000, or 0 for all", c.KeepTasks)
		}
		return nil
	}},
	{"keep-tasks-for", "`time` for which finished tasks are kept; 0: no limit", func(c *Config) any { return &c.KeepTasksFor }, func(c *Config) error {
		return notNegative(c.KeepTasksFor)
	}},
	{"keep-output-for", "`time` for which the output of finished tasks is kept; 0: as long as the task", func(c *Config) any { return &c.KeepOutputFor }, func(c *Config) error {
		return notNegative(c.KeepOutputFor)
	}},
}
