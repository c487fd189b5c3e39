package daemon

import (
	"net"
	"os"
	"path/filepath"
	"slices"

	"github.com/rs/zerolog"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/settings"
	"carma/runner"
	"carma/runner/certs"
)

// openRemote lets users of the cluster reach the daemon over TLS, if that is configured.
func openRemote(config settings.Config, r *runner.Runner, log zerolog.Logger) error {
	if config.Listen == "off" {
		return nil
	}
	get, err := certificate(config, log)
	if err != nil {
		return cli.Usagef("name other files with --listen-certificate and --listen-key, or leave both out", "listen: %v", err)
	}
	l, err := net.Listen("tcp", config.Listen)
	if err != nil {
		return cli.Usagef("choose another address with --listen, or off", "listen: %v", err)
	}
	r.Server().SetRemote(l, get)
	log.Info().Str("address", "https://"+l.Addr().String()).Strs("namespaces", append([]string{config.KubernetesNamespace}, config.KubernetesNamespaces...)).
		Msg("users of the cluster are answered over TLS")
	return nil
}

// certificate returns the administrator's certificate, or one made by the daemon.
func certificate(config settings.Config, log zerolog.Logger) (certs.Get, error) {
	if config.ListenCertificate != "" {
		return certs.Files(config.ListenCertificate, config.ListenKey, func(err error) {
			log.Warn().Err(err).Msg("a renewed certificate cannot be read; the old one is shown")
		})
	}
	own, err := certs.Own(filepath.Join(config.DataDir, "tls"), namesOf(config))
	if err != nil {
		return nil, err
	}
	log.Info().Str("ca", own.CA).Str("sha256", own.Fingerprint).Msg("clients need the certificate of this authority")
	return own.Get, nil
}

// namesOf returns the names and addresses by which clients may reach the daemon.
func namesOf(config settings.Config) []string {
	names := append([]string{"localhost", "127.0.0.1", "::1"}, config.ListenNames...)
	if host, err := os.Hostname(); err == nil {
		names = append(names, host)
	}
	if host, _, err := net.SplitHostPort(config.Listen); err == nil {
		names = append(names, host)
	}
	addresses, _ := net.InterfaceAddrs() // leave out addresses that cannot be read
	for _, a := range addresses {
		if ip, ok := a.(*net.IPNet); ok {
			names = append(names, ip.IP.String())
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
