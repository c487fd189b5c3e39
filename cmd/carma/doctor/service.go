package doctor

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"carma/cmd/carma/cli"
	"carma/runner/api"
)

// unit is the service installed by the package.
const unit = "carma.service"

// commandAnswers is the longest time to wait for a program of the system.
const commandAnswers = 5 * time.Second

// asking runs a program of the system. It returns the output, or "" if the program fails.
type asking func(ctx context.Context, name string, args ...string) string

func ask(ctx context.Context, name string, args ...string) string {
	ctx, cancel := context.WithTimeout(ctx, commandAnswers)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).Output()
	if err != nil {
		return ""
	}
	return string(out)
}

// service returns systemd's properties of the unit, or nil without systemd or without
// such a unit.
func service(ctx context.Context, ask asking) map[string]string {
	said := map[string]string{}
	for line := range strings.Lines(ask(ctx, "systemctl", "show", unit, "-p", "LoadState,ActiveState,SubState,UnitFileState,Result")) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			said[key] = value
		}
	}
	if said["LoadState"] != "loaded" {
		return nil
	}
	return said
}

// serviceCheck checks that the unit runs, and starts at boot.
func serviceCheck(said map[string]string) api.Check {
	c := api.Check{Name: "service", Status: checkOK, Detail: unit + " runs, and starts with the machine"}
	enabled := said["UnitFileState"] == "enabled"
	switch state := said["ActiveState"]; {
	case said["UnitFileState"] == "masked":
		c.Status, c.Detail, c.Fix = checkFailure, unit+" is masked", "sudo systemctl unmask carma; sudo systemctl enable --now carma"
	case state == "active" && !enabled:
		c.Status, c.Detail, c.Fix = checkWarning, unit+" runs, but does not start with the machine", "sudo systemctl enable carma"
	case state == "active":
	case said["SubState"] == "auto-restart":
		c.Status, c.Detail = checkFailure, fmt.Sprintf("%s ends soon after each start (%s)", unit, said["Result"])
		c.Fix = "journalctl -u carma -n 20 tells why; it is started again by itself"
	case state == "failed":
		c.Status, c.Detail = checkFailure, fmt.Sprintf("%s has failed (%s)", unit, said["Result"])
		c.Fix = "journalctl -u carma -n 20 tells why; then: sudo systemctl restart carma"
	case state == "inactive":
		c.Status, c.Detail, c.Fix = checkFailure, unit+" does not run", "sudo systemctl enable --now carma"
	default: // activating, deactivating, reloading
		c.Status, c.Detail, c.Fix = checkWarning, unit+" is "+state, "wait; journalctl -u carma -f shows its log"
	}
	return c
}

// adminsCheck names the users other than root who may see and stop the tasks of others.
// groups contains this process's groups.
func adminsCheck(ctx context.Context, ask asking, group string, root bool, groups []int) api.Check {
	c := api.Check{Name: "admins", Status: checkOK}
	add := fmt.Sprintf("sudo usermod -aG %s NAME; NAME logs in again", group)
	fields := strings.Split(strings.TrimSpace(ask(ctx, "getent", "group", group)), ":")
	if len(fields) != 4 { // name:password:gid:members
		c.Status, c.Fix = checkWarning, fmt.Sprintf("sudo groupadd --system %s; %s", group, add)
		c.Detail = fmt.Sprintf("there is no group %s (admin-group): only root may stop the tasks of others", group)
		return c
	}
	gid, _ := strconv.Atoi(fields[2])
	switch {
	case slices.Contains(groups, gid):
		c.Detail = "you are in group " + group + ": you may see and stop the tasks of others"
	case fields[3] == "":
		c.Status, c.Fix = checkWarning, add
		c.Detail = fmt.Sprintf("nobody is in group %s: only root may see and stop the tasks of others", group)
	case root:
		c.Detail = fmt.Sprintf("group %s has: %s", group, strings.ReplaceAll(fields[3], ",", ", "))
	default:
		c.Detail = fmt.Sprintf("you are not in group %s: you may use carma, and stop your own tasks", group)
	}
	return c
}

// versionCheck compares the versions of this program and of the daemon.
func versionCheck(mine, daemons string) (api.Check, bool) {
	if mine == daemons {
		return api.Check{}, false
	}
	return api.Check{
		Name: "version", Status: checkWarning, Detail: fmt.Sprintf("this is carma %s, the daemon is %s", mine, daemons),
		Fix: "restart the daemon, tasks go on: sudo systemctl restart carma",
	}, true
}

// systemChecks checks carma as a system service; installed contains systemd's properties
// of it.
func systemChecks(ctx context.Context, a *cli.App, client *api.Client, group string, installed map[string]string) []api.Check {
	var out []api.Check
	if installed != nil {
		out = append(out, serviceCheck(installed))
	}
	if info, err := client.Info(ctx); err == nil {
		if c, differ := versionCheck(a.Version, info.Version); differ {
			out = append(out, c)
		}
	}
	if group != "" {
		groups, _ := os.Getgroups()
		out = append(out, adminsCheck(ctx, ask, group, os.Geteuid() == 0, append(groups, os.Getegid())))
	}
	return out
}
