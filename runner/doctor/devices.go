package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"carma/containers"
	"carma/containers/cdi"
	"carma/runner/api"
	"carma/runner/gpu/driverfiles"
)

// checkDeviceAccess reports the tasks that can no longer open their GPUs, and whether
// this engine can take GPUs from running containers.
func (d *Doctor) checkDeviceAccess(f *Facts, root string) api.Check {
	c := accessDanger(f.Attach, d.Engine.Info().CgroupDriver, driverfiles.ToolkitMode(root))
	if d.Unchecked {
		c.Detail += "; running tasks are not checked: the daemon is not root's"
	}
	if len(f.Lost) > 0 {
		c.Status, c.Detail = "failure", strings.Join(f.Lost, "; ")+"; "+c.Detail
		c.Fix = cmp.Or(c.Fix, "find out who changed the containers' device rules or nodes (systemctl daemon-reload, docker update, runc update, udev)")
	}
	return c
}

// accessDanger returns a text that says whether running containers can lose their GPUs. When
// systemd or the engine rewrites the device rules, the new rules contain only the nodes in the
// container's specification. NVIDIA's hook adds its nodes without the engine's knowledge.
func accessDanger(mode containers.Attach, cgroups, toolkit string) api.Check {
	c := api.Check{Name: "GPU access", Status: "ok"}
	hook := mode == containers.AttachDeviceRequest || mode == containers.AttachRuntime && (toolkit == "legacy" || toolkit == "" || toolkit == "auto")
	switch {
	case mode == "":
		c.Detail = "not known without a way to attach GPUs"
	case !hook:
		c.Detail = "the engine knows the device nodes of its containers, so a reload of systemd takes none away"
	case cgroups == "systemd":
		c.Status = "warning"
		c.Detail = fmt.Sprintf("containers get their GPUs by NVIDIA's hook (%s) and systemd manages their control groups: systemctl daemon-reload takes the GPUs from running containers", mode)
		if mode == containers.AttachRuntime && toolkit != "legacy" {
			c.Detail = strings.Replace(c.Detail, "takes the GPUs", "may take the GPUs", 1)
		}
		c.Fix = "let the engine know the device nodes: CDI (Docker 25 or newer: nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml; for the nvidia runtime: nvidia-ctk config --in-place --set nvidia-container-runtime.mode=cdi), or native.cgroupdriver=cgroupfs in /etc/docker/daemon.json"
	case cgroups == "":
		c.Detail = "containers get their GPUs by NVIDIA's hook; who manages their control groups is not known"
	default:
		c.Detail = "a reload of systemd takes no GPU away: " + cgroups + " manages the containers' control groups; docker update does"
	}
	return c
}

// checkDriverFiles reports parts of NVIDIA's driver on this machine that do not belong
// together. CUDA programs in containers then fail although the GPUs are well.
func (d *Doctor) checkDriverFiles(root string) api.Check {
	var mounts []string
	if files, err := cdi.Read(d.Engine.Info().CDIDirs); err == nil && len(d.Engine.Info().CDIDirs) > 0 {
		mounts = files.Mounts()
	}
	return driverFilesCheck(root, mounts)
}

// driverFilesCheck is checkDriverFiles for the given CDI mounts.
func driverFilesCheck(root string, mounts []string) api.Check {
	c := api.Check{Name: "driver files", Status: "ok"}
	var details, fixes []string
	worse := func(status, detail, fix string) {
		if c.Status != "failure" {
			c.Status = status
		}
		details, fixes = append(details, detail), append(fixes, fix)
	}
	module := driverfiles.Module(root)
	library, path := driverfiles.Library(root)
	if module != "" && library != "" && library != module {
		worse("failure", fmt.Sprintf("the kernel module is of driver %s and %s of %s: CUDA programs end with error 803 (unsupported display driver / cuda driver combination)", module, path, library),
			"load the module of the installed driver: restart the machine")
	}
	if named := driverfiles.VersionIn(mounts); module != "" && len(named) > 0 && !slices.Contains(named, module) {
		worse("failure", fmt.Sprintf("the CDI files are of driver %s, and the kernel module is of %s: containers do not start, or CUDA programs in them fail", strings.Join(named, ", "), module),
			"make the CDI files again: nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml")
	}
	socket, program := driverfiles.Persistence(root)
	switch {
	case socket:
	case slices.ContainsFunc(mounts, driverfiles.IsPersistenceSocket):
		worse("failure", "the CDI files mount "+driverfiles.PersistenceSocket+", which is not there: containers with GPUs do not start",
			"systemctl enable --now nvidia-persistenced, or make the CDI files again without it: nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml")
	case program && module != "":
		worse("warning", "nvidia-persistenced is installed and does not run: a GPU without a program is shut down, and the next program waits for it",
			"systemctl enable --now nvidia-persistenced")
	}
	if folder, file := driverfiles.Compat(root); folder != "" {
		worse("warning", fmt.Sprintf("%s has the machine's programs use CUDA's forward compatibility libraries in %s: they end with error 803 on another driver, and with 804 on GeForce cards", file, folder),
			fmt.Sprintf("remove the line from %s, then run ldconfig; only images need these libraries", file))
	}
	switch {
	case len(details) > 0:
		c.Detail, c.Fix = strings.Join(details, "; "), strings.Join(fixes, "; ")
	case module == "":
		c.Detail = "not known: /proc/driver/nvidia/version cannot be read"
	case library == "" && len(mounts) == 0:
		c.Detail = "the kernel module is of driver " + module + "; its libraries are in no usual folder"
	default:
		c.Detail = "kernel module and libraries are of driver " + module
	}
	return c
}
