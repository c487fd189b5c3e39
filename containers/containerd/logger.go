package containerd

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"carma/containers/containerd/logfile"
)

// LogCommand is the first argument of the logger process; the second is the result of
// [loggerArg].
const LogCommand = "containerd-log"

// loggerArg encodes the logger's settings in one argument: the bytes to keep (0 for the
// default), the [logfile.Talk], if any, and the container's folder, like
// "67108864:/folder" or "67108864,tty:/folder". It is one argument because containerd
// does not preserve the order of several.
func loggerArg(dir string, bytes int64, talk logfile.Talk) string {
	settings := strconv.FormatInt(bytes, 10)
	if talk != logfile.TalkNone {
		settings += "," + string(talk)
	}
	return settings + ":" + dir
}

// parseLoggerArg is the inverse of loggerArg. Older daemons pass only the folder.
func parseLoggerArg(arg string) (dir string, bytes int64, talk logfile.Talk, err error) {
	if strings.HasPrefix(arg, "/") {
		return arg, 0, logfile.TalkNone, nil
	}
	settings, dir, _ := strings.Cut(arg, ":")
	amount, how, _ := strings.Cut(settings, ",")
	talk = logfile.Talk(how)
	bytes, err = strconv.ParseInt(amount, 10, 64)
	known := talk == logfile.TalkNone || talk == logfile.TalkTerminal || talk == logfile.TalkInput
	if err != nil || !strings.HasPrefix(dir, "/") || !known {
		return "", 0, "", fmt.Errorf("%q is not of the form 67108864:/folder", arg)
	}
	return dir, bytes, talk, nil
}

// RunLogger runs [LogCommand] and returns the exit code. args are the arguments
// after the command.
func RunLogger(args []string) int {
	if len(args) != 1 {
		fmt.Fprintln(os.Stderr, "carma: "+LogCommand+" is started by containerd, with one argument")
		return 2
	}
	dir, bytes, talk, err := parseLoggerArg(args[0])
	if err != nil {
		fmt.Fprintln(os.Stderr, "carma: "+LogCommand+":", err)
		return 2
	}
	return logfile.Run(dir, bytes, talk)
}
