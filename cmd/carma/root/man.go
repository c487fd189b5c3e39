package root

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"carma/cmd/carma/cli"
	"carma/configs"
)

// manCommand returns carma man, which makes the packages' manual pages.
func manCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "man FOLDER", Short: "Write the manual pages into a folder", Hidden: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Usagef("write for example: carma man /usr/local/share/man", "it takes one folder")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			pages := map[string]string{"man5/carma.yaml.5": configPage(a.Version)}
			addPages(pages, cmd.Root(), a.Version)
			for name, text := range pages {
				path := filepath.Join(args[0], name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					return err
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// addPages adds the pages of a command and its subcommands.
func addPages(pages map[string]string, cmd *cobra.Command, version string) {
	if cmd.Hidden {
		return
	}
	pages["man1/"+pageOf(cmd)+".1"] = manPage(cmd, version)
	for _, c := range cmd.Commands() {
		addPages(pages, c, version)
	}
}

// pageOf returns the name of a command's page, such as carma-suite-up.
func pageOf(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manPage returns a command's page in the format of man(7).
func manPage(cmd *cobra.Command, version string) string {
	var b strings.Builder
	manHead(&b, pageOf(cmd), 1, version, strings.ToLower(cmd.Short[:1])+cmd.Short[1:])
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", roff(cmd.UseLine()))
	b.WriteString(".SH DESCRIPTION\n")
	if text := strings.TrimSpace(cmd.Long); text != "" {
		writeRoff(&b, text)
	} else {
		b.WriteString(roff(cmd.Short) + ".\n")
	}
	var below []string
	for _, c := range cmd.Commands() {
		if c.Hidden {
			continue
		}
		if below == nil {
			b.WriteString(".SH COMMANDS\n")
		}
		below = append(below, pageOf(c))
		fmt.Fprintf(&b, ".TP\n.BR %s (1)\n%s.\n", roff(pageOf(c)), roff(c.Short))
	}
	writeFlags(&b, "OPTIONS", cmd.LocalFlags())
	writeFlags(&b, "GLOBAL OPTIONS", cmd.InheritedFlags())
	if cmd.Example != "" {
		fmt.Fprintf(&b, ".SH EXAMPLES\n.nf\n%s\n.fi\n", roff(strings.TrimRight(cmd.Example, "\n")))
	}
	see := []string{"carma.yaml(5)"}
	if cmd.HasParent() {
		see = append([]string{pageOf(cmd.Parent()) + "(1)"}, see...)
	}
	fmt.Fprintf(&b, ".SH SEE ALSO\n%s\n", roff(strings.Join(see, ", ")))
	return b.String()
}

func manHead(b *strings.Builder, name string, section int, version, what string) {
	fmt.Fprintf(b, ".TH \"%s\" %d \"\" \"carma %s\" \"carma\"\n.nh\n.ad l\n", roff(strings.ToUpper(name)), section, roff(version))
	fmt.Fprintf(b, ".SH NAME\n%s \\- %s\n", roff(name), roff(what))
}

func writeFlags(b *strings.Builder, title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	fmt.Fprintf(b, ".SH %s\n", title)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if value != "" {
			name += " " + value
		}
		if d := f.DefValue; d != "" && d != "false" && d != "0" && d != "[]" && d != "0s" {
			usage += " (default " + d + ")"
		}
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(name), roff(usage))
	})
}

// configPage returns carma.yaml(5): the sample of the configuration, its comments as
// text.
func configPage(version string) string {
	var b strings.Builder
	manHead(&b, "carma.yaml", 5, version, "configuration of carma, in /etc/carma/config.yaml")
	b.WriteString(".SH DESCRIPTION\n")
	var text []string
	flush := func() {
		if len(text) > 0 {
			writeRoff(&b, strings.Join(text, "\n"))
		}
		text = nil
	}
	for line := range strings.Lines(configs.Example) {
		line = strings.TrimRight(line, "\n")
		words, comment := strings.CutPrefix(line, "# ")
		switch {
		case strings.HasPrefix(line, "# ---"):
			flush()
			fmt.Fprintf(&b, ".SH %s\n", roff(strings.ToUpper(strings.Trim(words, "- "))))
		case comment || line == "#":
			text = append(text, words)
		case line == "":
			flush()
		default: // a setting, after its text
			flush()
			fmt.Fprintf(&b, ".RS\n.B %s\n.RE\n", roff(strings.TrimPrefix(line, "#")))
		}
	}
	flush()
	b.WriteString(".SH SEE ALSO\ncarma\\-config(1), carma\\-daemon(1)\n")
	return b.String()
}

// writeRoff writes paragraphs; it keeps lines that begin with a space.
func writeRoff(b *strings.Builder, text string) {
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		kept := false
		b.WriteString(".PP\n")
		for line := range strings.Lines(paragraph) {
			line = strings.TrimRight(line, "\n")
			if asIs := strings.HasPrefix(line, " "); asIs != kept {
				kept = asIs
				b.WriteString(map[bool]string{true: ".nf\n", false: ".fi\n"}[asIs])
			}
			if line != "" && line != "#" {
				b.WriteString(roff(line) + "\n")
			}
		}
		if kept {
			b.WriteString(".fi\n")
		}
	}
}

// roff escapes special characters, and lines that man would interpret as commands.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, `"`, `\(dq`, "-", `\-`, "~", `\(ti`, "^", `\(ha`, "`", `\(ga`, "'", `\(aq`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
