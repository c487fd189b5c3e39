package cli

import (
	"encoding/csv"
	"slices"
	"strconv"
	"strings"

	"carma/internal/suggest"
	"carma/runner/api"
)

// mountPart is key=value, or only a key, of --mount.
type mountPart struct{ key, value string }

// The keys of both types of mounts, other than type.
var (
	bindKeys  = []string{"source", "src", "target", "destination", "dst", "readonly", "ro"}
	tmpfsKeys = []string{"target", "destination", "dst", "tmpfs-size", "tmpfs-mode", "readonly", "ro"}
)

// mountParts parses the value of --mount, a line of CSV as in docker, and its type, by
// default bind.
func mountParts(list string) (kind string, parts []mountPart, err error) {
	flag := "--mount " + list
	fields, err := csv.NewReader(strings.NewReader(list)).Read()
	if err != nil {
		return "", nil, Usagef("write for example type=bind,source=./data,target=/data", "%s: its quotes do not match", flag)
	}
	kind = "bind"
	for _, field := range fields {
		p := mountPart{}
		p.key, p.value, _ = strings.Cut(field, "=")
		if p.key == "type" {
			kind = p.value
			continue
		}
		parts = append(parts, p)
	}
	keys := map[string][]string{"bind": bindKeys, "tmpfs": tmpfsKeys}[kind]
	if keys == nil {
		return "", nil, Usagef("carma mounts folders of the host, and folders in memory", "%s: only type=bind and type=tmpfs", flag)
	}
	for i, p := range parts {
		if !slices.Contains(keys, p.key) {
			hint := "there are type, source, target and readonly"
			if kind == "tmpfs" {
				hint = "there are target, tmpfs-size and tmpfs-mode"
			}
			if near := suggest.Near(p.key, append([]string{"type"}, keys...)); len(near) > 0 {
				hint = "nearest: " + near[0]
			}
			return "", nil, Usagef(hint, "%s: unknown key %q", flag, p.key)
		}
		if p.key != "readonly" && p.key != "ro" {
			continue
		}
		only := p.value == ""
		if !only {
			if only, err = strconv.ParseBool(p.value); err != nil {
				return "", nil, Usagef("write "+p.key+"=true or "+p.key+"=false", "%s: %s=%s", flag, p.key, p.value)
			}
		}
		parts[i] = mountPart{"readonly", strconv.FormatBool(only)}
	}
	return kind, parts, nil
}

// MountOf parses --mount type=bind,source=./data,target=/data,readonly.
func MountOf(list string) (m api.Mount, err error) {
	_, parts, err := mountParts(list)
	if err != nil {
		return m, err
	}
	for _, p := range parts {
		switch p.key {
		case "source", "src":
			m.Source = p.value
		case "target", "destination", "dst":
			m.Target = p.value
		case "readonly":
			m.ReadOnly = p.value == "true"
		}
	}
	if m.Source == "" || m.Target == "" {
		return m, Usagef("write for example type=bind,source=./data,target=/data", "--mount %s: it needs source and target", list)
	}
	return settled(m, "--mount "+list)
}

// TmpfsOf parses --mount type=tmpfs,target=/scratch,tmpfs-size=1G as the value of
// --tmpfs. It returns false for another type of mount.
func TmpfsOf(list string) (text string, is bool, err error) {
	kind, parts, err := mountParts(list)
	if err != nil {
		return "", true, err
	}
	target, options := "", []string{}
	for _, p := range parts {
		switch p.key {
		case "target", "destination", "dst":
			target = p.value
		case "tmpfs-size":
			options = append(options, "size="+p.value)
		case "tmpfs-mode":
			options = append(options, "mode="+p.value)
		case "readonly":
			if p.value == "true" {
				options = append(options, "ro")
			}
		}
	}
	if is = kind == "tmpfs"; is && target == "" {
		err = Usagef("write for example type=tmpfs,target=/scratch,tmpfs-size=1G", "--mount %s: it needs a target", list)
	}
	return target + ":" + strings.Join(options, ","), is, err
}
