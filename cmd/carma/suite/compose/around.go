package compose

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"

	"carma/internal/lazyregexp"
	"carma/runner/api"
)

const defaultNetwork = "default"

// joins returns a service's connections to the networks of the suite.
func (t *translator) joins(c types.ServiceConfig) (all []api.NetworkPlace) {
	switch mode := c.NetworkMode; {
	case mode == "none":
		return nil
	case mode == "host":
		t.refuseAt(c.Name, "the host's network is shared by all users of the machine; a service reaches the others by their names, and ports are published at 127.0.0.1", "network_mode")
		return nil
	case strings.HasPrefix(mode, "service:"):
		return nil // within handles this case
	case strings.HasPrefix(mode, "container:"):
		t.refuseAt(c.Name, "containers outside the suite are not reached; write network_mode: service:NAME for one of this file", "network_mode")
		return nil
	}
	names := slices.Sorted(maps.Keys(c.Networks))
	slices.SortStableFunc(names, func(a, b string) int {
		x, y := c.Networks[a], c.Networks[b]
		if x == nil || y == nil {
			return 0
		}
		return cmp.Compare(max(y.GatewayPriority, y.Priority), max(x.GatewayPriority, x.Priority))
	})
	if len(names) == 0 {
		names = []string{defaultNetwork}
	}
	for _, name := range names {
		p := api.NetworkPlace{Network: t.networkName(name), Aliases: []string{c.Name}}
		add := func(alias string) {
			if goodAlias().MatchString(alias) && !slices.Contains(p.Aliases, alias) {
				p.Aliases = append(p.Aliases, alias)
			}
		}
		add(c.ContainerName)
		if n := c.Networks[name]; n != nil {
			for _, alias := range n.Aliases {
				add(alias)
			}
		}
		for _, other := range t.project.Services {
			for _, link := range other.Links {
				if of, alias, _ := strings.Cut(link, ":"); of == c.Name {
					add(alias)
				}
			}
		}
		all = append(all, p)
	}
	return all
}

// within determines the service whose network namespace a service shares, including
// loopback and ports.
func (t *translator) within(c types.ServiceConfig, h *api.Helper) {
	of, shares := strings.CutPrefix(c.NetworkMode, "service:")
	if !shares {
		return
	}
	refuse := func(why string, keys ...string) { t.refuseAt(c.Name, why, keys...) }
	other, runs := t.project.Services[of]
	switch {
	case !runs || other.GetScale() == 0:
		refuse(of+" does not run; name a service that does", "network_mode")
	case of == c.Name:
		refuse("its own network is what it has without network_mode", "network_mode")
	case t.isTask[of]:
		refuse(of+" is a task, which has its network only while it runs; reach it by its name, http://"+of+":PORT, in the networks of the suite", "network_mode")
	case other.GetScale() > 1:
		refuse(fmt.Sprintf("%s has %d containers; reach them by its name", of, other.GetScale()), "network_mode")
	case strings.HasPrefix(other.NetworkMode, "service:"):
		refuse(of+" has no network of its own; write network_mode: "+other.NetworkMode, "network_mode")
	}
	for key, given := range map[string]bool{"ports": len(c.Ports) > 0, "hostname": c.Hostname != "", "extra_hosts": len(c.ExtraHosts) > 0, "links": len(c.Links) > 0} {
		if given {
			refuse("it shares the network of "+of+"; write "+key+" there", key)
		}
	}
	h.Within = of
}

var goodAlias = lazyregexp.New(`^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,63}$`)

// networkName returns a network's name in the suite: its key, or its own name for a
// network that suites share.
func (t *translator) networkName(key string) string {
	if n := t.project.Networks[key]; bool(n.External) || n.Name != "" && n.Name != t.project.Name+"_"+key {
		return cmp.Or(n.Name, key)
	}
	return key
}

// volumeName is like networkName for a volume. It returns empty for an anonymous volume.
func (t *translator) volumeName(key string) string {
	if v := t.project.Volumes[key]; key != "" && (bool(v.External) || v.Name != "" && v.Name != t.project.Name+"_"+key) {
		return cmp.Or(v.Name, key)
	}
	return key
}

// beside collects the networks and volumes that the services use. A suite without its own
// helpers, volumes, files and networks needs nothing besides its tasks.
func (t *translator) beside(s *Suite) {
	var used []api.Joined
	for _, h := range s.Helpers {
		used = append(used, h.Helper.Joined)
	}
	needed := len(s.Helpers) > 0
	for _, service := range s.Services {
		j := s.around.Tasks[service.Name]
		used = append(used, j)
		needed = needed || len(j.Volumes)+len(j.Files)+len(j.Hosts) > 0 || len(t.project.Services[service.Name].Links) > 0 ||
			slices.ContainsFunc(j.Networks, func(p api.NetworkPlace) bool { return p.Network != defaultNetwork })
	}
	if !needed {
		s.around = api.Suite{}
		t.noNetworks(s)
		return
	}
	for _, key := range slices.Sorted(maps.Keys(t.project.Networks)) {
		name := t.networkName(key)
		if slices.ContainsFunc(used, func(j api.Joined) bool {
			return slices.ContainsFunc(j.Networks, func(p api.NetworkPlace) bool { return p.Network == name })
		}) {
			t.network(s, key, name)
		}
	}
	if !slices.ContainsFunc(s.around.Networks, func(n api.SuiteNetwork) bool { return n.Name == defaultNetwork }) && slices.ContainsFunc(used, func(j api.Joined) bool {
		return slices.ContainsFunc(j.Networks, func(p api.NetworkPlace) bool { return p.Network == defaultNetwork })
	}) {
		s.around.Networks = append(s.around.Networks, api.SuiteNetwork{Name: defaultNetwork})
	}
	for _, key := range slices.Sorted(maps.Keys(t.project.Volumes)) {
		name := t.volumeName(key)
		if slices.ContainsFunc(used, func(j api.Joined) bool {
			return slices.ContainsFunc(j.Volumes, func(p api.VolumePlace) bool { return p.Volume == name })
		}) {
			t.volume(s, key, name)
		}
	}
}

// noNetworks warns of networks if the suite has only tasks, which then get none.
func (t *translator) noNetworks(s *Suite) {
	for _, service := range s.Services {
		c := t.project.Services[service.Name]
		if c.NetworkMode != "" {
			t.warnAt(service.Name, noNetwork, "network_mode")
		} else if t.has(service.Name, "networks") {
			t.warnAt(service.Name, noNetwork, "networks")
		}
	}
}

func (t *translator) network(s *Suite, key, name string) {
	n := t.project.Networks[key]
	_, line := t.find("networks", key)
	at := "networks." + key
	switch n.Driver {
	case "", "bridge", "default":
	case "overlay":
		t.warn(line, at+".driver", "there is one machine; it is a network of that")
	default:
		t.refuse(line, at+".driver", n.Driver+" reaches the machine's own network; a suite has networks of its own")
	}
	if len(n.DriverOpts) > 0 {
		t.warn(line, at+".driver_opts", ownChoice+" them")
	}
	if len(n.Ipam.Config) > 0 {
		t.warn(line, at+".ipam", ownChoice+" addresses")
	}
	if n.EnableIPv6 != nil && *n.EnableIPv6 {
		t.warn(line, at+".enable_ipv6", "a suite's networks have IPv4")
	}
	shared := name != key || bool(n.External)
	if n.External {
		t.say(line, at+".external", "it is your own network "+name+", which your suites share; it is made if it is missing")
	}
	s.around.Networks = append(s.around.Networks, api.SuiteNetwork{Name: name, Shared: shared, Internal: n.Internal})
}

func (t *translator) volume(s *Suite, key, name string) {
	v := t.project.Volumes[key]
	_, line := t.find("volumes", key)
	at := "volumes." + key
	if v.Driver != "" && v.Driver != "local" {
		t.refuse(line, at+".driver", v.Driver+" is another driver; carma's volumes are the engine's own folders")
	}
	if len(v.DriverOpts) > 0 {
		t.refuse(line, at+".driver_opts", "with options a volume can be any folder or device of the machine; mount a folder of the host instead, ./"+key+":/target")
	}
	if v.External {
		t.say(line, at+".external", "it is your own volume "+name+", which your suites share; it is made if it is missing")
	}
	s.around.Volumes = append(s.around.Volumes, api.SuiteVolume{Name: name, Shared: name != key || bool(v.External)})
}

// files reads secrets, configs and lines of /etc/hosts.
func (t *translator) files(c types.ServiceConfig, j *api.Joined) {
	for _, ref := range c.Secrets {
		f := types.FileReferenceConfig(ref)
		target := cmp.Or(f.Target, f.Source)
		if !path.IsAbs(target) {
			target = path.Join("/run/secrets", target)
		}
		t.addFile(c, j, "secrets", types.FileObjectConfig(t.project.Secrets[f.Source]), f, target)
	}
	for _, ref := range c.Configs {
		f := types.FileReferenceConfig(ref)
		t.addFile(c, j, "configs", types.FileObjectConfig(t.project.Configs[f.Source]), f, path.Join("/", cmp.Or(f.Target, f.Source)))
	}
	for _, name := range slices.Sorted(maps.Keys(c.ExtraHosts)) {
		for _, address := range c.ExtraHosts[name] {
			j.Hosts = append(j.Hosts, name+":"+address)
		}
	}
}

// addFile adds a secret or config.
func (t *translator) addFile(c types.ServiceConfig, j *api.Joined, key string, o types.FileObjectConfig, ref types.FileReferenceConfig, target string) {
	line, at := t.at(c.Name, key)
	at += "." + ref.Source
	f := api.SuiteFile{Path: target, UID: -1, GID: -1, Mode: 0o444}
	switch {
	case bool(o.External), o.Driver != "":
		t.refuse(line, at, "carma keeps no store of "+key+"; write file, environment or content")
		return
	case o.File != "":
		info, err := os.Stat(o.File)
		if err == nil && info.Size() > maxCopied {
			t.refuse(line, at, fmt.Sprintf("%s has %d KiB; at most %d KiB can be", o.File, info.Size()>>10, maxCopied>>10))
			return
		}
		if f.Content, err = os.ReadFile(o.File); err != nil {
			t.refuse(line, at, o.File+": "+reason(err))
			return
		}
	case o.Environment != "":
		value, set := t.env[o.Environment]
		if !set {
			t.refuse(line, at, "the variable "+o.Environment+" is not set")
			return
		}
		f.Content = []byte(value)
	default:
		f.Content = []byte(o.Content)
	}
	for to, text := range map[*int]string{&f.UID: ref.UID, &f.GID: ref.GID} {
		if text == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			t.refuse(line, at, fmt.Sprintf("uid or gid %q is no number", text))
			return
		}
		*to = n
	}
	if ref.Mode != nil {
		f.Mode = uint32(*ref.Mode) & 0o777
	}
	j.Files = append(j.Files, f)
}
