package runner

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/gpu"
	"carma/runner/gpu/cgroup"
)

// checkSuspend reports for each GPU whether tasks can be suspended there, and why not. The
// check does not fail if they cannot, because nothing else depends on suspending tasks.
func (r *Runner) checkSuspend() api.Check {
	c := api.Check{Name: "suspending tasks", Status: "ok"}
	on := map[string][]string{}
	var texts []string
	for _, d := range r.ordered() {
		text, mend := r.suspendText(d)
		c.Fix = cmp.Or(c.Fix, mend)
		if on[text] == nil {
			texts = append(texts, text)
		}
		on[text] = append(on[text], fmt.Sprint(d.Index))
	}
	var parts []string
	for _, text := range texts {
		parts = append(parts, "GPU "+strings.Join(on[text], ", ")+": "+text)
	}
	c.Detail = strings.Join(parts, "; ")
	return c
}

// suspendText returns a text that describes how tasks on a GPU can be suspended. mend is the
// fix if they cannot.
func (r *Runner) suspendText(d gpu.Device) (text, mend string) {
	kind, alone, why := r.suspendKind(d)
	if kind != model.SuspendNever && r.opt.SetSpeed == nil {
		if without, help := lacks(os.Geteuid(), r.owners.root); without != "" {
			kind, why, mend = model.SuspendNever, without, help
		}
	}
	switch kind {
	case model.SuspendNever:
		if o := r.opt.Suspending; mend == "" && o != nil && !o.Off {
			mend = mendSuspend(why)
		}
		return "no: " + why, mend
	case model.SuspendMove:
		text = "yes, and they may come back to another GPU of the same model"
	default:
		text = "yes, back to the same GPU"
		if why != "" {
			text += " (" + why + ")"
		}
	}
	if alone {
		text += "; only those that have it alone, the others are clients of MPS"
	}
	return text, ""
}

// MaySuspend returns an error that says why the daemon cannot suspend tasks on real GPUs,
// apart from the driver, or nil.
func MaySuspend() error {
	if why, _ := lacks(os.Geteuid(), "/"); why != "" {
		return errors.New(why)
	}
	return nil
}

// lacks returns the missing requirement of the driver and the control groups for a daemon
// with this uid, and how to fix it. root has the machine's /proc and /sys.
func lacks(euid int, root string) (why, mend string) {
	switch {
	case euid != 0:
		return "carma daemon is not root, who alone may freeze containers and have the driver suspend programs of others", "run carma daemon as root"
	case !cgroup.SeesHost(root):
		return "carma daemon runs in a PID namespace of its own; the NVIDIA driver needs the machine's process numbers", "run carma in the host's PID namespace: docker run --pid host"
	case !freezes(root):
		return "the kernel has no control groups that freeze containers", "mount /sys/fs/cgroup with cgroup2, or the freezer of version 1"
	}
	return "", ""
}

// freezes reports whether containers can be frozen by their control groups. Version 2
// always can freeze them, version 1 needs the freezer hierarchy.
func freezes(root string) bool {
	return slices.ContainsFunc([]string{"sys/fs/cgroup/cgroup.controllers", "sys/fs/cgroup/freezer"}, func(name string) bool {
		_, err := os.Stat(filepath.Join(root, name))
		return err == nil
	})
}

// mendSuspend returns the fix for a reason not to suspend, or "" if there is none.
func mendSuspend(why string) string {
	switch {
	case strings.Contains(why, "the NVIDIA driver is ") || strings.Contains(why, "older than"):
		return "install NVIDIA driver 580 or newer"
	case strings.Contains(why, "built without cgo"):
		return "CGO_ENABLED=1 make build, with a C compiler in PATH"
	case strings.Contains(why, "did not start"):
		return "see the daemon's log: the suspend helper has written why"
	}
	return ""
}
