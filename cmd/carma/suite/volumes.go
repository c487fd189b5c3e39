package suite

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
	"go.yaml.in/yaml/v3"

	"carma/runner/api"
)

// volumes takes the bind mounts and refuses every other kind.
func (t *translator) volumes(c types.ServiceConfig, s *Service) {
	for _, v := range c.Volumes {
		line, key := t.volumeAt(c.Name, v.Target)
		switch {
		case v.Type == types.VolumeTypeVolume && v.Source == "":
			t.warn(line, key, "a volume without a name; "+v.Target+" is in the container itself and goes with it")
			continue
		case v.Type == types.VolumeTypeVolume:
			t.refuse(line, key, "carma has no named volumes like "+v.Source+"; write a folder of the host: ./"+v.Source+":"+v.Target)
			continue
		case v.Type != types.VolumeTypeBind:
			t.refuse(line, key, "a mount of type "+v.Type+"; "+noBind)
			continue
		case v.Target == "" || v.Target[0] != '/':
			t.refuse(line, key, "the target "+v.Target+" is not absolute; it is a folder in the container")
			continue
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
				continue
			}
			s.Create = append(s.Create, v.Source)
		}
		s.Submit.Mounts = append(s.Submit.Mounts, api.Mount{Source: v.Source, Target: v.Target, ReadOnly: v.ReadOnly})
	}
}

// volumeAt is the line of the mount with a target.
func (t *translator) volumeAt(service, target string) (int, string) {
	for _, name := range t.lineage(service) {
		list, _ := t.find("services", name, "volumes")
		if list == nil {
			continue
		}
		for _, item := range list.Content {
			text := item.Value
			if _, v := get(item, "target"); v != nil {
				text = ":" + v.Value
			}
			if item.Kind == yaml.ScalarNode && text == target || slices.Contains(strings.Split(text, ":"), target) {
				return item.Line, "services." + name + ".volumes"
			}
		}
	}
	return t.at(service, "volumes")
}
