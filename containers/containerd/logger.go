package containerd

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"carma/containers/containerd/logfile"
)

// LogCommand is the first argument of the program that keeps a container's
// output; the second is that of [loggerArg].
const LogCommand = "containerd-log"

// loggerArg tells the logger how many bytes to keep (0: its own amount), and the
// container's folder: "67108864:/folder". It is one argument, because containerd
// keeps no order among several.
func loggerArg(dir string, bytes int64) string { return strconv.FormatInt(bytes, 10) + ":" + dir }

// parseLoggerArg is the inverse of loggerArg. A folder alone is what older
// daemons pass.
func parseLoggerArg(arg string) (dir string, bytes int64, err error) {
	if strings.HasPrefix(arg, "/") {
		return arg, 0, nil
	}
	amount, dir, _ := strings.Cut(arg, ":")
	bytes, err = strconv.ParseInt(amount, 10, 64)
	if err != nil || !strings.HasPrefix(dir, "/") {
		return "", 0, fmt.Errorf("%q is not of the form 67108864:/folder", arg)
	}
	return dir, bytes, nil
}

// RunLogger carries out [LogCommand] and returns the exit code. args are those
// after the command.
func RunLogger(args []string) int {
	if len(args) != 1 {
		fmt.Fprintln(os.Stderr, "carma: "+LogCommand+" is started by containerd, with one argument")
		return 2
	}
	dir, bytes, err := parseLoggerArg(args[0])
	if err != nil {
		fmt.Fprintln(os.Stderr, "carma: "+LogCommand+":", err)
		return 2
	}
	return logfile.Run(dir, bytes)
}
