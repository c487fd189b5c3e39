package manifest

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"carma/containers"
	"carma/containers/option"
)

// folder checks the source of a mount and returns its type if the folder exists on this
// machine. For a folder that does not exist here, the node checks nothing.
func (m *Builder) folder(source string) (corev1.HostPathType, error) {
	clean := path.Clean(source)
	allowed := path.IsAbs(source) && slices.ContainsFunc(m.hostPaths, func(p string) bool {
		return clean == path.Clean(p) || strings.HasPrefix(clean, strings.TrimSuffix(path.Clean(p), "/")+"/")
	})
	if !allowed {
		return "", fmt.Errorf("%w: mounting %s: each node has folders of its own, and the administrator has not listed this one as shared by all", containers.ErrUnsupported, source)
	}
	switch info, err := os.Stat(source); {
	case err == nil && info.IsDir():
		return corev1.HostPathDirectory, nil
	case err == nil:
		return corev1.HostPathFile, nil
	}
	return corev1.HostPathUnset, nil
}

// mount adds the volumes: folders of the node, volumes in memory, and /dev/shm.
func (m *Builder) mount(spec containers.Spec, pod *corev1.Pod, c *corev1.Container) error {
	add := func(source corev1.VolumeSource, target string, readOnly bool) {
		name := "v" + strconv.Itoa(len(pod.Spec.Volumes))
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: source})
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: target, ReadOnly: readOnly})
	}
	memory := func(bytes int64) corev1.VolumeSource {
		return corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{
			Medium: corev1.StorageMediumMemory, SizeLimit: resource.NewQuantity(bytes, resource.BinarySI),
		}}
	}
	for _, mount := range spec.Mounts {
		if !path.IsAbs(mount.Target) || path.Clean(mount.Target) == "/" {
			return fmt.Errorf("%w: mount target %q: it must be an absolute path and not /", containers.ErrInvalid, mount.Target)
		}
		kind, err := m.folder(mount.Source)
		if err != nil {
			return err
		}
		add(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: mount.Source, Type: &kind}}, mount.Target, mount.ReadOnly)
	}
	// Mount a folder before its subfolders.
	tmpfs := option.Each(spec.Tmpfs, option.ParseTmpfs)
	slices.SortFunc(tmpfs, func(a, b option.Tmpfs) int { return strings.Compare(a.Target, b.Target) })
	for _, t := range tmpfs {
		add(memory(t.Size), t.Target, t.ReadOnly)
	}
	if spec.ShmSize > 0 {
		add(memory(spec.ShmSize), "/dev/shm", false)
	}
	return nil
}
