package compose

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
	"go.yaml.in/yaml/v3"

	"carma/runner/api"
)

// volumes reads a service's mounts. Folders of the host become mounts of its container.
// Volumes and folders in memory become part of the result.
func (t *translator) volumes(c types.ServiceConfig, s *Service) (j api.Joined) {
	for _, v := range c.Volumes {
		line, key := t.volumeAt(c.Name, v.Target)
		if folder := t.boundTo(v.Source); v.Type == types.VolumeTypeVolume && folder != "" {
			v.Type, v.Source, v.Bind = types.VolumeTypeBind, folder, nil
		}
		switch {
		case v.Target == "" || v.Target[0] != '/':
			t.refuse(line, key, "the target "+v.Target+" is not absolute; it is a folder in the container")
		case v.Type == types.VolumeTypeVolume && v.Source == "" && s.Helper == nil:
			t.warn(line, key, "a volume without a name; "+v.Target+" is in the container itself and goes with it")
		case v.Type == types.VolumeTypeVolume:
			j.Volumes = append(j.Volumes, api.VolumePlace{Volume: t.volumeName(v.Source), Target: v.Target, ReadOnly: v.ReadOnly, NoCopy: v.Volume != nil && v.Volume.NoCopy})
		case v.Type == types.VolumeTypeTmpfs && s.Helper != nil:
			s.Helper.Tmpfs = append(s.Helper.Tmpfs, v.Target+tmpfsOptions(v.Tmpfs))
		case v.Type == types.VolumeTypeTmpfs:
			options := tmpfsOptions(v.Tmpfs)
			if v.ReadOnly {
				options = strings.Join(slices.DeleteFunc([]string{options, "ro"}, func(o string) bool { return o == "" }), ",")
			}
			f, _ := api.FieldNamed("tmpfs")
			if err := f.Set(&s.Submit, strings.TrimSuffix(v.Target+":"+strings.TrimPrefix(options, ":"), ":")); err != nil {
				t.refuse(line, key, err.Error())
			}
		case v.Type != types.VolumeTypeBind:
			t.refuse(line, key, "a mount of type "+v.Type+"; "+noBind)
		default:
			t.bind(s, v, line, key)
		}
	}
	return j
}

// boundTo returns the host folder that a named volume stands for, or "" for a real
// volume. Such a folder is mounted like any other, with the same restrictions.
func (t *translator) boundTo(volume string) string {
	v := t.project.Volumes[volume]
	flags := strings.Split(v.DriverOpts["o"], ",")
	if volume == "" || v.Driver != "" && v.Driver != "local" || !slices.Contains(flags, "bind") && !slices.Contains(flags, "rbind") {
		return ""
	}
	return v.DriverOpts["device"]
}

// bind adds a folder of the host.
func (t *translator) bind(s *Service, v types.ServiceVolumeConfig, line int, key string) {
	if engineSocket(v.Source) {
		t.refuse(line, key, v.Source+" is the engine's socket; whoever has it is root on this machine")
		return
	}
	if v.Bind != nil && !slices.Contains([]string{"", types.PropagationRPrivate}, v.Bind.Propagation) {
		t.refuse(line, key, "propagation "+v.Bind.Propagation+"; a mount is "+types.PropagationRPrivate)
	}
	if v.Bind != nil && v.Bind.SELinux != "" {
		t.warn(line, key, "files get no new SELinux label")
	}
	if _, err := os.Stat(v.Source); errors.Is(err, fs.ErrNotExist) {
		if v.Bind != nil && !bool(v.Bind.CreateHostPath) {
			t.refuse(line, key, v.Source+" does not exist")
			return
		}
		s.Create = append(s.Create, v.Source)
	}
	s.Submit.Mounts = append(s.Submit.Mounts, api.Mount{Source: v.Source, Target: v.Target, ReadOnly: v.ReadOnly})
}

// engineSocket reports whether a path looks like a container engine's socket.
func engineSocket(path string) bool {
	return slices.Contains([]string{"docker.sock", "containerd.sock", "podman.sock", "crio.sock"}, filepath.Base(path))
}

func tmpfsOptions(o *types.ServiceVolumeTmpfs) string {
	var all []string
	if o != nil && o.Size > 0 {
		all = append(all, fmt.Sprintf("size=%d", int64(o.Size)))
	}
	if o != nil && o.Mode > 0 {
		all = append(all, fmt.Sprintf("mode=%o", o.Mode))
	}
	if len(all) == 0 {
		return ""
	}
	return ":" + strings.Join(all, ",")
}

// volumeAt returns the line and the path of the mount with this target.
func (t *translator) volumeAt(service, target string) (int, string) {
	for _, base := range t.lineage(service) {
		list, _ := t.find(append(slices.Clone(base), "volumes")...)
		if list == nil {
			continue
		}
		for _, item := range list.Content {
			text := item.Value
			if _, v := get(item, "target"); v != nil {
				text = ":" + v.Value
			}
			if item.Kind == yaml.ScalarNode && text == target || slices.Contains(strings.Split(text, ":"), target) {
				return item.Line, keyText(base) + ".volumes"
			}
		}
	}
	return t.at(service, "volumes")
}
