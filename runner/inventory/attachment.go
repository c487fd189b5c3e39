package inventory

import (
	"fmt"
	"os/exec"
	"slices"
	"sync/atomic"

	"carma/containers"
	"carma/containers/cdi"
)

// Attachment decides how containers get their GPUs.
type Attachment struct {
	gpus    *GPUs
	mode    containers.Attach // as configured, or empty
	driver  string            // the name of the engine's driver
	engine  func() containers.Engine
	refuses atomic.Bool // NVIDIA's hook has refused a device request
}

// NewAttachment returns the attachment of GPUs. mode is the configured one, or empty to
// choose one. driver is the name of the engine's driver; engine returns its last answer.
func NewAttachment(gpus *GPUs, mode containers.Attach, driver string, engine func() containers.Engine) *Attachment {
	return &Attachment{gpus: gpus, mode: mode, driver: driver, engine: engine}
}

// Mode returns how containers get their GPUs, and why. It returns the configured mode,
// or else the one that the engine and the machine allow now.
func (a *Attachment) Mode() (mode containers.Attach, why string, err error) {
	if a.mode != "" {
		return a.mode, "as configured", nil
	}
	e := a.engine()
	_, hook := exec.LookPath("nvidia-container-runtime-hook")
	mode, why, err = containers.ChooseAttach(containers.Choice{
		Driver: a.driver, Engine: e, Hook: hook == nil, Refused: a.refuses.Load(), CDI: a.missingCDI(e.CDIDirs),
	})
	if err != nil {
		return "", "", fmt.Errorf("no way to give containers their GPUs: %w", err)
	}
	return mode, why, nil
}

// Refuse records that NVIDIA's hook has refused a device request. It returns false if that
// was known.
func (a *Attachment) Refuse() bool { return !a.refuses.Swap(true) }

// missingCDI returns an error if the CDI files in dirs lack a GPU of this
// machine.
func (a *Attachment) missingCDI(dirs []string) error {
	files, err := cdi.Read(dirs)
	if err != nil {
		return err
	}
	var uuids []string
	for id := range a.gpus.Infos() {
		uuids = append(uuids, string(id))
	}
	slices.Sort(uuids)
	return files.Missing(uuids)
}

// Nodes returns the device nodes of GPUs in a container, or nil if unknown.
func (a *Attachment) Nodes(mode containers.Attach, uuids []string) []string {
	if nodes := containers.NodesOf(uuids); nodes != nil {
		return nodes
	}
	if mode != containers.AttachCDI {
		return nil
	}
	files, err := cdi.Read(a.engine().CDIDirs)
	if err != nil {
		return nil
	}
	return containers.OnlyGPUNodes(files.Nodes(uuids))
}
