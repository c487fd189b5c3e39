package deviceaccess

import (
	"slices"

	"carma/mapper/model"
)

// LostGPUs returns the GPUs of an attempt that have lost their own nodes. It returns all of
// gpus if only nodes are lost that GPUs share, or it is not known which GPU has which node.
// nodes returns the nodes of a GPU.
func (r Result) LostGPUs(gpus []model.GPUID, nodes func(model.GPUID) []string) (lost []model.GPUID) {
	for _, id := range gpus {
		if slices.ContainsFunc(nodes(id), func(path string) bool { return slices.Contains(r.Lost, path) }) {
			lost = append(lost, id)
		}
	}
	if len(lost) == 0 {
		return gpus
	}
	return lost
}

// Text describes a loss of devices, as a sentence without a subject. names returns the
// text for a list of GPUs.
func Text(l *model.DeviceLoss, names func([]model.GPUID) string) string {
	which := "its GPUs"
	if len(l.GPUs) > 0 {
		which = names(l.GPUs)
	}
	switch l.State {
	case model.DevicesDenied:
		return which + " can no longer be opened in the container (device cgroup)"
	case model.DevicesGone:
		return which + " can no longer be opened in the container (the device node is gone)"
	}
	return "its GPUs can be opened in the container again"
}

// Why returns the text that carma why shows for a running task that lost its devices, or
// "".
func Why(l *model.DeviceLoss, names func([]model.GPUID) string) string {
	if l == nil {
		return ""
	}
	return "; " + Text(l, names) + " since " + l.Since.Time().Local().Format("2006-01-02 15:04") +
		": running programs go on, programs that open them again fail; if the task fails, or has no process on a GPU, it is started again without blame"
}
