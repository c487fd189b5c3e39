// Package label names the containers of attempts, and reads and writes their labels. An
// attempt's container is found by its labels, whatever it was made from.
package label

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"carma/containers"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/record"
)

// The labels that identify a container: the data folder, the task, the attempt, and the
// task's nonce. A container with all of these labels belongs to the attempt, whatever it
// was made from. A container that lacks one of them does not.
const (
	Instance = "carma.daemon"
	Task     = "carma.task"
	Attempt  = "carma.attempt"
	Nonce    = "carma.nonce"
)

// The labels that describe a container to people, and to a daemon that has lost
// its journal. They describe the launch and are never compared: the journal
// knows what the attempt may use now.
const (
	Name     = "carma.name"
	Image    = "carma.image"
	User     = "carma.user"
	UID      = "carma.uid"
	GID      = "carma.gid"
	GPUs     = "carma.gpus"        // UUIDs
	Grants   = "carma.grants"      // UUID=bytes of each GPU
	Grant    = "carma.grant-bytes" // the largest
	Attach   = "carma.attach"      // how the container got its GPUs
	Host     = "carma.host"        // host resources allocated, JSON
	Launched = "carma.launched"    // RFC 3339
)

// ContainerName returns the name of an attempt's container. It is fixed by the daemon's
// instance, the task and the attempt, so that the engine itself refuses to run an attempt
// twice.
func ContainerName(instance string, task model.TaskID, attempt int) string {
	return fmt.Sprintf("carma-%s-%d-%d", instance, task, attempt)
}

// Identity returns the labels that identify an attempt's container. Tasks of programs before
// nonces have no nonce, so any nonce matches.
func Identity(instance string, task model.TaskID, attempt int, nonce string) map[string]string {
	id := map[string]string{Instance: instance, Task: task.String(), Attempt: strconv.Itoa(attempt)}
	if nonce != "" {
		id[Nonce] = nonce
	}
	return id
}

// ParseAttempt returns the task and the attempt that a container's labels name, or false if
// they name none.
func ParseAttempt(labels map[string]string) (task model.TaskID, attempt int, ok bool) {
	id, err1 := strconv.ParseInt(labels[Task], 10, 64)
	attempt, err2 := strconv.Atoi(labels[Attempt])
	return model.TaskID(id), attempt, err1 == nil && err2 == nil
}

// Describe returns the labels that describe the container of a launch.
func Describe(rec *record.Record, l model.Launch, mode containers.Attach) map[string]string {
	var most units.Bytes
	uuids, grants := make([]string, len(l.Grants)), make([]string, len(l.Grants))
	for i, g := range l.Grants {
		uuids[i], grants[i] = string(g.GPU), fmt.Sprintf("%s=%d", g.GPU, g.Memory)
		most = max(most, g.Memory)
	}
	about := map[string]string{
		Name: rec.Name, Image: rec.Submit.Source(),
		User: rec.User, UID: strconv.Itoa(rec.UID), GID: strconv.Itoa(rec.GID),
		GPUs: strings.Join(uuids, ","), Grants: strings.Join(grants, ","),
		Grant: strconv.FormatInt(int64(most), 10), Attach: string(mode),
	}
	if host, err := json.Marshal(l.Host); err == nil {
		about[Host] = string(host)
	}
	if a := rec.Task.Last(); a != nil && a.N == l.Attempt {
		about[Launched] = a.Launched.Time().Format(time.RFC3339Nano)
	}
	return about
}

// ParseGrants reads the label of the grants. Older containers have the labels of
// GPUs and grant instead.
func ParseGrants(labels map[string]string) (grants []model.Grant, err error) {
	list := labels[Grants]
	if list == "" && labels[GPUs] != "" {
		for uuid := range strings.SplitSeq(labels[GPUs], ",") {
			list += "," + uuid + "=" + cmp.Or(labels[Grant], "0")
		}
		list = list[1:]
	}
	if _, has := labels[Grants]; has && list == "" && labels[Host] != "" {
		return nil, nil // the task has no GPU
	}
	for entry := range strings.SplitSeq(list, ",") {
		uuid, size, _ := strings.Cut(entry, "=")
		n, err := strconv.ParseInt(size, 10, 64)
		if uuid == "" || err != nil || n < 0 {
			return nil, fmt.Errorf("its label %s, %q, does not say what was granted", Grants, list)
		}
		grants = append(grants, model.Grant{GPU: model.GPUID(uuid), Memory: units.Bytes(n)})
	}
	return grants, nil
}
