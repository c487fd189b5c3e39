package containers

import (
	"strings"

	"carma/internal/lazyregexp"
)

// SubmitterFault reports whether an engine's message about a failed creation or start is
// about a fault of the request. Engines report some of these as their own errors. It
// covers the texts of Docker 20.10 to 29, containerd 1.6 to 2 and runc 1.0 to 1.3. Call
// [MachineFault] first.
func SubmitterFault(msg string) bool { return submitterFault().MatchString(msg) || taskFault(msg) }

var submitterFault = lazyregexp.New(`(?i)unable to find (user|group)|no matching entries in (passwd|group) file|` +
	`uids and gids must be in range|executable file not found|exec: ".*": (stat .*: )?(no such file|permission denied|is a directory)|` +
	`exec format error|cannot mkdir: .* is not a directory|: not a directory|are you trying to mount|` +
	`mkdir .*: (no such file|read-only file system|not a directory|permission denied)|` +
	`chdir to cwd|invalid mount|bind source path does not exist|error mounting .* to rootfs`)

// CleanMessage turns an engine's message into one line for people. It removes the names
// of software layers and the engine's own paths.
func CleanMessage(msg string) string {
	msg = noise.Replace(strings.TrimSpace(msg))
	msg = engineDir().ReplaceAllString(msg, "")
	msg = strings.TrimSuffix(msg, `"`)
	msg = strings.TrimSuffix(strings.TrimSpace(msg), ": unknown")
	const limit = 400
	if len(msg) > limit {
		msg = strings.ToValidUTF8(msg[:limit], "") + "..."
	}
	return msg
}

var noise = strings.NewReplacer(
	"Error response from daemon: ", "", "failed to create shim task: ", "", "failed to create task for container: ", "",
	"OCI runtime create failed: ", "", "runc create failed: ", "", "unable to start container process: ", "",
	"error during container init: ", "", `connection error: desc = "transport: Error while dialing: `, "", ": unknown:", ":", "\n", "; ", "\r", "",
)

// engineDir is the path of a container's root, as Docker and containerd name it.
var engineDir = lazyregexp.New(`/[^\s:"]*/((overlay2|rootfs)/[0-9a-f]{32,}(-init)?/merged|io\.containerd\.runtime\.v2\.task/[^/\s:"]+/[^/\s:"]+/rootfs)`)
