// Package kubeconfig connects users of a cluster to its daemon over TLS, with the token from
// their kubeconfig or from its credential plugin.
package kubeconfig

import (
	"errors"
	"fmt"
	"net/http"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"carma/cmd/carma/contexts"
	"carma/runner/api"
)

// Connect is [contexts.OverTLS].
func Connect(c contexts.Context) (*api.Client, error) {
	_, address, err := contexts.ParseHost(c.Host)
	if err != nil {
		return nil, err
	}
	config, namespace, err := credentials(c)
	if err != nil {
		return nil, err
	}
	config.Host = address
	// An upgraded connection of a terminal needs HTTP/1.1.
	config.NextProtos = []string{"http/1.1"}
	if config.TLSClientConfig = (rest.TLSClientConfig{CAFile: c.CA, NextProtos: config.NextProtos}); c.CA != "" {
		if _, err := os.Stat(c.CA); err != nil {
			return nil, fmt.Errorf("the certificate authority of %s: %w", address, err)
		}
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("the connection to %s: %w", address, err)
	}
	return api.NewRemote(address, &http.Client{Transport: named{transport, namespace}}), nil
}

// credentials returns only the user's token, or the plugin that gets it. It takes no
// certificate and no cluster address from a kubeconfig.
func credentials(c contexts.Context) (*rest.Config, string, error) {
	if c.TokenFile != "" {
		if _, err := os.Stat(c.TokenFile); err != nil {
			return nil, "", fmt.Errorf("your token: %w", err)
		}
		return &rest.Config{BearerTokenFile: c.TokenFile}, c.Namespace, nil
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.Kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: c.KubeContext})
	full, err := loader.ClientConfig()
	if err != nil {
		return nil, "", fmt.Errorf("your token: %w", err)
	}
	if full.BearerToken == "" && full.BearerTokenFile == "" && full.ExecProvider == nil && full.AuthProvider == nil {
		return nil, "", errors.New("your token: the kubeconfig has none (client certificates and passwords are no use here); kubectl create token makes one for a service account")
	}
	namespace := c.Namespace
	if namespace == "" {
		if namespace, _, err = loader.Namespace(); err != nil {
			return nil, "", fmt.Errorf("your namespace: %w", err)
		}
	}
	out := &rest.Config{
		BearerToken: full.BearerToken, BearerTokenFile: full.BearerTokenFile, ExecProvider: full.ExecProvider, AuthProvider: full.AuthProvider,
		AuthConfigPersister: full.AuthConfigPersister,
	}
	return out, namespace, nil
}

// named adds the user's namespace to each request.
type named struct {
	http.RoundTripper
	namespace string
}

func (n named) RoundTrip(req *http.Request) (*http.Response, error) {
	if n.namespace != "" {
		req = req.Clone(req.Context())
		req.Header.Set(api.NamespaceHeader, n.namespace)
	}
	return n.RoundTripper.RoundTrip(req)
}
