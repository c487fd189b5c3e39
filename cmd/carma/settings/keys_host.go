package settings

import (
	"fmt"
	"strings"
	"time"

	"carma/internal/units"
	"carma/mapper/rules"
)

// hostKeys configure the daemon, the GPUs, the engine, estimates and retention.
var hostKeys = []key{
	setting("socket", "path of the daemon's unix `socket`", func(c *Config) *string { return &c.Socket }, validSocket),
	setting("web", "where the page is served: auto (on a socket of its own), 127.0.0.1:PORT (also there) or off", func(c *Config) *string { return &c.Web }, func(v string) error {
		_, err := PagePort(v)
		return err
	}),
	setting("data-dir", "`folder` of the journal and the tasks' output", func(c *Config) *string { return &c.DataDir }, absolute),
	setting("journal-reserve", "spare room on the data folder's disk; it is given up when the disk is full, so that tasks can still be stopped and removed; 0: none", func(c *Config) *units.Bytes { return &c.JournalReserve }, rules.AtLeast(units.Bytes(0), "%d is negative; write for example 16M, or 0 for none")),
	setting("gpus", "where the GPUs come from: auto, nvml, nvml:GPU,..., sim:SERVER or cluster", func(c *Config) *string { return &c.GPUs }, validSource),
	setting("speed", "simulated time per clock time, with sim: only", func(c *Config) *float64 { return &c.Speed }, func(v float64) error {
		if !(v > 0 && v <= 100_000) {
			return fmt.Errorf("%v is not above 0 and at most 100000", v)
		}
		return nil
	}),
	setting("sample-every", "`time` between two readings of the GPUs", func(c *Config) *time.Duration { return &c.SampleEvery }, rules.AtLeast(10*time.Millisecond, "%s is less than 10ms; write for example 1s")),
	setting("activity", "how readings of activity become one figure: mean, or risk (high readings count more)", func(c *Config) *string { return &c.Activity }, rules.Among("activity", Activities)),
	setting("dcgm-exporter", "`URL` of a dcgm-exporter's page, for the activity of GPUs before Hopper", func(c *Config) *string { return &c.DCGMExporter }, validPage),
	setting("metrics", "TCP `address` of the page for Prometheus, for example 127.0.0.1:9810, or off; it is on the socket in any case", func(c *Config) *string { return &c.Metrics }, validAddress),
	setting("metrics-names", "figures of single tasks and users on that page, with their names", func(c *Config) *bool { return &c.MetricsNames }),

	setting("notify", "`file` of the administrator's channels for messages: auto (root's daemon: /etc/carma/notify.yaml, if it is there), a path, or off", func(c *Config) *string { return &c.Notify }, func(v string) error {
		if v == "auto" || v == "off" {
			return nil
		}
		return absolute(v)
	}),

	setting("driver", "what runs the containers: docker, containerd or kubernetes", func(c *Config) *string { return &c.Driver }, rules.Among("driver", Drivers)),
	setting("docker-host", "`address` of the Docker engine; empty: DOCKER_HOST, else Docker's default", func(c *Config) *string { return &c.DockerHost }),
	setting("containerd-address", "path of containerd's `socket`; empty: CONTAINERD_ADDRESS, else containerd's default", func(c *Config) *string { return &c.ContainerdAddress }, rules.OrNone(validSocket)),
	setting("containerd-namespace", "containerd's `namespace` for images and containers", func(c *Config) *string { return &c.ContainerdNamespace }, func(v string) error {
		if !namespaceName().MatchString(v) || len(v) > 76 {
			return fmt.Errorf("%q is not the name of a namespace: letters, digits, and single dots, dashes and underscores between them; write for example carma", v)
		}
		return nil
	}),
	setting("kubeconfig", "`file` that tells how to reach the cluster; empty: as kubectl finds it, or as a pod of the cluster does", func(c *Config) *string { return &c.Kubeconfig }, rules.OrNone(absolute)),
	setting("kubernetes-namespace", "the `namespace` of the daemon, and of tasks that name no other; empty: the kubeconfig's", func(c *Config) *string { return &c.KubernetesNamespace }, func(v string) error {
		if v != "" && !kubernetesName().MatchString(v) {
			return fmt.Errorf("%q is not the name of a namespace: small letters, digits and dashes, at most 63; write for example carma", v)
		}
		return nil
	}),
	setting("kubernetes-namespaces", "further `namespaces` that tasks may run in; * is all", func(c *Config) *[]string { return &c.KubernetesNamespaces }, each(func(n string) error {
		if n != "*" && !kubernetesName().MatchString(n) {
			return fmt.Errorf("%q is not the name of a namespace: small letters, digits and dashes, at most 63; write for example lab, or * for all", n)
		}
		return nil
	})),
	setting("kubernetes-admins", "`names` of users of the cluster, and with @ of groups, who may do what admins may", func(c *Config) *[]string { return &c.KubernetesAdmins }, each(func(n string) error {
		if strings.TrimPrefix(n, "@") == "" {
			return fmt.Errorf("%q is no name; write for example ann@example.org, or @lab-admins for a group", n)
		}
		return nil
	})),
	setting("listen", "TCP `address` at which users of the cluster reach the daemon over TLS, for example 0.0.0.0:7443, or off", func(c *Config) *string { return &c.Listen }, validAddress),
	setting("listen-certificate", "`file` with the certificate of that address, in PEM; empty: the daemon makes one", func(c *Config) *string { return &c.ListenCertificate }, rules.OrNone(absolute)),
	setting("listen-key", "`file` with the key of that certificate, in PEM", func(c *Config) *string { return &c.ListenKey }, rules.OrNone(absolute)),
	setting("listen-names", "further host `names` and addresses of that address, for the certificate that the daemon makes", func(c *Config) *[]string { return &c.ListenNames }),
	setting("token-audience", "`audience` that the tokens of users must be meant for; empty: the cluster's apiserver", func(c *Config) *string { return &c.TokenAudience }),
	setting("kubernetes-folders", "`folders` that are the same on all nodes and here, which tasks may mount", func(c *Config) *[]string { return &c.KubernetesFolders }, each(absolute)),
	setting("network", "the containers' `network`; empty: the engine's default", func(c *Config) *string { return &c.Network }),
	setting("attach", "how containers get their GPUs: auto, device-request, runtime, cdi or simulated", func(c *Config) *string { return &c.Attach }, rules.Among("attachment", Attachments)),
	setting("processors", "where tasks with GPUs run: any, or near: only at the NUMA node of their GPUs", func(c *Config) *string { return &c.Processors }, rules.Among("choice of processors", ProcessorChoices)),
	setting("suspend", "whether running tasks can be suspended, where the driver can: auto, here (they come back to the same GPU), move (or to another of the same model) or off", func(c *Config) *string { return &c.Suspend }, rules.Among("choice", SuspendChoices)),
	setting("pull", "when images are fetched: missing, always or never", func(c *Config) *string { return &c.Pull }, rules.Among("pull rule", PullRules)),
	setting("environment", "software and GPU that memory estimates assume; empty: chosen by the GPUs; carma estimate --help lists them", func(c *Config) *string { return &c.Environment }),
	setting("probe", "tasks that are probed before they are queued: asked (those with --probe), unknown (also those of which nothing is known) or never", func(c *Config) *string { return &c.Probe }, rules.Among("choice", Probes)),
	setting("probe-timeout", "`time` a probe may take", func(c *Config) *time.Duration { return &c.ProbeTimeout }, rules.AtLeast(time.Second, "%s is less than 1s; write for example 2m")),
	setting("probe-memory", "host `memory` a probe may use", func(c *Config) *units.Bytes { return &c.ProbeMemory }, rules.AtLeast(64*units.MiB, "%s is too little to start a program in; write for example 8G")),
	setting("mps", "sharing by NVIDIA's Multi-Process Service: auto (as user, where it is installed and works), off, user (each user's tasks among themselves) or shared (all tasks)", func(c *Config) *string { return &c.MPS }, rules.Among("choice", MPSGroups)),
	setting("mps-control", "the MPS control `program`", func(c *Config) *string { return &c.MPSControl }, named("no program named; the NVIDIA driver's is nvidia-cuda-mps-control")),
	setting("mps-dir", "`folder` of the MPS control daemons", func(c *Config) *string { return &c.MPSDir }, func(v string) error {
		if len(v) > 60 {
			return fmt.Errorf("%s is too long: a socket is made in it; write for example /run/carma/mps", v)
		}
		return absolute(v)
	}),
	setting("mps-threads", "most SMs a task may use at a time under MPS, in percent; 0: no limit", func(c *Config) *int { return &c.MPSThreads }, func(v int) error {
		if v < 0 || v > 100 {
			return fmt.Errorf("%d is not between 0 and 100", v)
		}
		return nil
	}),
	setting("mps-memory-limit", "under MPS, refuse a task more memory than its grant", func(c *Config) *bool { return &c.MPSMemoryLimit }),
	setting("mps-ipc", "the IPC namespace of tasks under MPS: private, or host if the driver needs it", func(c *Config) *string { return &c.MPSIPC }, rules.Among("choice", MPSIPCs)),
	setting("memory-limit", "limit of the GPU memory of tasks that may share: auto (the driver's if there is one, and MPS's if MPS is on), driver (the daemon does not start without the driver's), mps (only MPS's) or off", func(c *Config) *string { return &c.MemoryLimit }, rules.Among("choice", MemoryLimits)),
	setting("memory-burst", "under the driver's limit, let a task use all memory that is free on its GPUs at its start, not only its grant", func(c *Config) *bool { return &c.MemoryBurst }),
	setting("nvidia-smi", "the `program` that sets the driver's memory limits", func(c *Config) *string { return &c.NVIDIASMI }, named("no program named; the NVIDIA driver's is nvidia-smi")),
	setting("memory-caps", "settings of frameworks for their GPU memory beside other tasks: growth (take memory as needed), fractions (also stop at the grant) or off", func(c *Config) *string { return &c.MemoryCaps }, rules.Among("choice", MemoryCaps)),
	setting("stop-grace", "`time` between a task's stop signal and its kill", func(c *Config) *time.Duration { return &c.StopGrace }, rules.NotNegative),
	setting("log-bytes", "output kept per attempt", func(c *Config) *units.Bytes { return &c.LogBytes }, rules.AtLeast(units.KiB, "%d bytes is too small; write for example 64M")),
	setting("output-dir", "`folder` of the tasks' output; empty: folder logs of data-dir", func(c *Config) *string { return &c.OutputDir }, rules.OrNone(absolute)),
	setting("output-task", "output kept per task; 0: four times log-bytes", func(c *Config) *units.Bytes { return &c.OutputTask }, output),
	setting("output-user", "output kept per user; 0: half of output-total", func(c *Config) *units.Bytes { return &c.OutputUser }, output),
	setting("output-total", "output kept of all tasks; 0: a tenth of the disk", func(c *Config) *units.Bytes { return &c.OutputTotal }, output),
	setting("output-free", "disk space that output leaves free; 0: a twentieth of the disk, at most 1G", func(c *Config) *units.Bytes { return &c.OutputFree }),
	setting("keep-tasks", "number of finished tasks that are kept; 0: all", func(c *Config) *int { return &c.KeepTasks }, rules.AtLeast(0, "%d is negative; write for example 100000, or 0 for all")),
	setting("keep-tasks-for", "`time` for which finished tasks are kept; 0: no limit", func(c *Config) *time.Duration { return &c.KeepTasksFor }, rules.NotNegative),
	setting("keep-output-for", "`time` for which the output of finished tasks is kept; 0: as long as the task", func(c *Config) *time.Duration { return &c.KeepOutputFor }, rules.NotNegative),
}
