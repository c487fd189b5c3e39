package main

import (
	"errors"
	"io"
	"os"

	"carma/mapper/units"

	"github.com/spf13/cobra"

	"carma/configs"
	"carma/containers"
)

// imageCommand is for containerd, which has no command of its own that every
// machine has. It talks to the engine, not to the daemon.
func (a *app) imageCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "image COMMAND",
		Short: "Import and list the images of containerd",
		Long: `Import and list the images that tasks run from with driver containerd. They are
in a namespace of carma's own. With driver docker use docker load.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return unknownCommand(cmd, args[0])
		},
	}
	cmd.AddCommand(a.imageImportCommand(), a.imageListCommand())
	for _, c := range cmd.Commands() {
		c.DisableFlagsInUseLine = true
		configs.AddFlags(c.Flags(), "driver", "containerd-address", "containerd-namespace")
	}
	return cmd
}

// images opens the engine of the command's configuration.
func (a *app) images(cmd *cobra.Command) (containers.ImageStore, error) {
	config, _, err := configs.Load(cmd.Flags())
	if err != nil {
		return nil, err
	}
	d, err := openDriver(config)
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
	return nil, usagef(use, "carma image is for containerd; the driver is %s", config.Driver)
}

func (a *app) imageImportCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import [flags] FILE",
		Short: "Import images from a tar file",
		Long: `Import the images of a tar file as docker save or an OCI tool writes it; "-" is
standard input. Prints their names, by which tasks name them.`,
		Example: `  docker save my/training:1 | carma image import --driver containerd -`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 || args[0] == "" {
				return usagef("write for example: "+cmd.CommandPath()+" image.tar", "it takes one file, not %d", len(args))
			}
			return nil
		},
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		d, err := a.images(cmd)
		if err != nil {
			return err
		}
		defer func() { _ = d.Close() }()
		tar := io.Reader(a.in)
		if args[0] != "-" {
			f, err := os.Open(expandHome(args[0]))
			if err != nil {
				return usagef("", "import %s: %v", args[0], reason(err))
			}
			defer func() { _ = f.Close() }()
			tar = f
		}
		names, err := d.Import(cmd.Context(), tar)
		for _, name := range names {
			a.println(name)
		}
		return imageError(err)
	}
	return cmd
}

func (a *app) imageListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ls [flags]",
		Short: "List images",
		Args:  noArgs,
	}
	asJSON := addJSON(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		d, err := a.images(cmd)
		if err != nil {
			return err
		}
		defer func() { _ = d.Close() }()
		list, err := d.Images(cmd.Context())
		if err != nil {
			return imageError(err)
		}
		if *asJSON {
			return a.json(list)
		}
		t := &table{columns: []column{{title: "IMAGE"}, {title: "ID"}, {title: "SIZE", right: true}, {title: "CREATED"}}}
		for _, img := range list {
			t.add(img.Name, shortDigest(img.ID), units.Bytes(img.Size).String(), img.Created.Local().Format("2006-01-02 15:04"))
		}
		return t.write(a.out, widthOf(a.out))
	}
	return cmd
}

// imageError adds what to do about an engine that is not there.
func imageError(err error) error {
	switch {
	case errors.Is(err, containers.ErrUnavailable):
		return usagef("start containerd, or say where it is: --containerd-address PATH", "%v", err)
	case errors.Is(err, containers.ErrInvalid):
		return usagef("", "%v", err)
	}
	return err
}

// shortDigest is an image's id as Docker shows it.
func shortDigest(id string) string {
	const prefix, show = len("sha256:"), 12
	if len(id) > prefix+show {
		return id[prefix : prefix+show]
	}
	return id
}
