// Package image contains the command carma image.
package image

import (
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/engine"
	"carma/cmd/carma/settings"
	"carma/containers"
	"carma/internal/units"
)

// Command returns the command carma image. It is for containerd, whose own image command
// is not on every machine. It talks to the engine, not to the daemon.
func Command(a *cli.App) *cobra.Command {
	cmd := cli.Parent(&cobra.Command{
		Use:     "image COMMAND",
		GroupID: cli.GroupServer,
		Short:   "Import and list the images of containerd",
		Long: `Import and list the images that tasks run from with driver containerd. They are
in a namespace of carma's own. With driver docker use docker load.`,
	}, importCommand(a), listCommand(a))
	for _, c := range cmd.Commands() {
		settings.AddFlags(c.Flags(), "driver", "containerd-address", "containerd-namespace")
	}
	return cmd
}

// images opens the engine of the command's configuration.
func images(a *cli.App, cmd *cobra.Command) (containers.ImageStore, error) {
	config, _, err := settings.Load(cmd.Flags())
	if err != nil {
		return nil, err
	}
	d, err := engine.Open(config)
	if err != nil {
		return nil, err
	}
	if store, ok := d.(containers.ImageStore); ok {
		return store, nil
	}
	_ = d.Close()
	use := "write --driver containerd"
	if own, ok := d.(containers.Advised); ok {
		use = "use " + own.Advice().Images + ", or " + use
	}
	return nil, cli.Usagef(use, "carma image is for containerd; the driver is %s", config.Driver)
}

func importCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import [flags] FILE",
		Short: "Import images from a tar file",
		Long: `Import the images of a tar file as docker save or an OCI tool writes it; "-" is
standard input. It prints their names, as carma run takes them.`,
		Example: `  docker save my/training:1 | carma image import --driver containerd -`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 || args[0] == "" {
				return cli.Usagef("write for example: "+cmd.CommandPath()+" image.tar", "it takes one file, not %d", len(args))
			}
			return nil
		},
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		d, err := images(a, cmd)
		if err != nil {
			return err
		}
		defer func() { _ = d.Close() }()
		tar := io.Reader(a.In)
		if args[0] != "-" {
			f, err := os.Open(cli.ExpandHome(args[0]))
			if err != nil {
				return cli.Usagef("", "import %s: %v", args[0], cli.Reason(err))
			}
			defer func() { _ = f.Close() }()
			tar = f
		}
		names, err := d.Import(cmd.Context(), tar)
		for _, name := range names {
			a.Println(name)
		}
		return withHint(err)
	}
	return cmd
}

func listCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ls [flags]",
		Short: "List images",
		Args:  cli.NoArgs,
	}
	asJSON := cli.JSONFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		d, err := images(a, cmd)
		if err != nil {
			return err
		}
		defer func() { _ = d.Close() }()
		list, err := d.Images(cmd.Context())
		if err != nil {
			return withHint(err)
		}
		if *asJSON {
			return a.JSON(list)
		}
		t := &cli.Table{Columns: []cli.Column{{Title: "IMAGE"}, {Title: "ID"}, {Title: "SIZE", Right: true}, {Title: "CREATED"}}}
		for _, img := range list {
			t.Add(img.Name, shortDigest(img.ID), units.Bytes(img.Size).String(), img.Created.Local().Format("2006-01-02 15:04"))
		}
		return a.Print(t)
	}
	return cmd
}

// withHint adds a hint to an error about an engine that does not answer.
func withHint(err error) error {
	switch {
	case errors.Is(err, containers.ErrUnavailable):
		return cli.Usagef("start containerd, or say where it is: --containerd-address PATH", "%v", err)
	case errors.Is(err, containers.ErrInvalid):
		return cli.Usagef("", "%v", err)
	}
	return err
}

// shortDigest returns an image's id as Docker shows it.
func shortDigest(id string) string {
	const prefix, show = len("sha256:"), 12
	if len(id) > prefix+show {
		return id[prefix : prefix+show]
	}
	return id
}
