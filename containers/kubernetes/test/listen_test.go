//go:build kubernetes

package test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"

	"carma/runner/certs"
)

// tlsSecret returns the Secret with the daemon's certificate, in JSON, and the file with the
// certificate of the authority that signed it. Each call makes a new authority.
func (c *cluster) tlsSecret() (body, ca string) {
	c.t.Helper()
	a, err := certs.Own(c.t.TempDir(), append(addresses(c.t), "carma.carma.svc"))
	if err != nil {
		c.t.Fatal(err)
	}
	pair, err := a.Get(nil)
	if err != nil {
		c.t.Fatal(err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		c.t.Fatal(err)
	}
	text, err := json.Marshal(map[string]any{"metadata": map[string]string{"name": "carma-tls"}, "type": "kubernetes.io/tls", "data": map[string][]byte{
		"tls.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}),
		"tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
	}})
	if err != nil {
		c.t.Fatal(err)
	}
	return string(text), a.CA
}

// addresses lists this machine's addresses. The pods of its node have the same.
func addresses(t *testing.T) (all []string) {
	t.Helper()
	list, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range list {
		if ip, ok := a.(*net.IPNet); ok {
			all = append(all, ip.IP.String())
		}
	}
	return all
}

const secrets = "/api/v1/namespaces/carma/secrets"

// listens makes a user who connects over TLS to the address behind the Service, because the
// Service's own address does not work here.
func (c *cluster) listens(ca string) (u *user, at string) {
	c.t.Helper()
	c.until("the Service leads to the daemon", func() bool {
		list, _ := get[discoveryv1.EndpointSliceList](c, "/apis/discovery.k8s.io/v1/namespaces/carma/endpointslices?labelSelector=kubernetes.io%2Fservice-name%3Dcarma")
		for _, s := range list.Items {
			if len(s.Ports) == 1 && len(s.Endpoints) == 1 && *s.Endpoints[0].Conditions.Ready {
				at = net.JoinHostPort(s.Endpoints[0].Addresses[0], strconv.Itoa(int(*s.Ports[0].Port)))
			}
		}
		return at != ""
	})
	u = c.newUser("ann", "")
	c.must(http.MethodPost, "/apis/rbac.authorization.k8s.io/v1/namespaces/ann/rolebindings", `{"metadata":{"name":"carma-tasks"},
		"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"carma-tasks"},"subjects":[{"kind":"ServiceAccount","name":"carma-daemon","namespace":"carma"}]}`)
	u.env = append(u.env, "CARMA_HOST=https://"+at, "CARMA_CA="+ca)
	return u, at
}

// testListen checks an installation with the component listen. The daemon presents the Secret's
// certificate at its Service. A user runs a task there with a token, and continues after the
// certificate is renewed, without a new pod.
func (c *cluster) testListen(ca string) {
	ann, at := c.listens(ca)
	ann.wants(0, "", "ps")
	ann.wants(0, "hello-ann", "run", "--name", "anns", "--mem", "512M", "--user", "1000:1000", "--pull", "never", tool, "out:hello-ann", "exit:0")
	ann.wants(0, "anns", "ps", "-a")
	ann.wants(0, "hello-ann", "logs", "anns")
	ann.refused("namespace carma", "run", "--namespace", "carma", "--mem", "512M", tool, "exit:0")

	pod := c.daemonPod()
	secret, renewed := c.tlsSecret()
	c.must(http.MethodPatch, secrets+"/carma-tls", secret)
	text, err := os.ReadFile(renewed)
	if err != nil {
		c.t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(text)
	c.until("the renewed certificate is shown", func() bool {
		conn, err := tls.Dial("tcp", at, &tls.Config{RootCAs: trusted, ServerName: "carma.carma.svc"})
		if err == nil {
			err = conn.Close()
		}
		return err == nil
	})
	ann.refused("certificate", "ps")
	ann.env = append(ann.env, "CARMA_CA="+renewed)
	ann.wants(0, "anns", "ps", "-a")
	if after := c.daemonPod(); after != pod {
		c.t.Errorf("the daemon's pod was %s and is %s", pod, after)
	}
	ann.wants(0, "", "rm", "anns")
	c.empty("ann")
}

// daemonPod returns the daemon's pod and the number of its starts.
func (c *cluster) daemonPod() string {
	c.t.Helper()
	pod, ok := get[struct {
		Metadata struct{ UID string }
		Status   struct {
			ContainerStatuses []struct{ RestartCount int }
		}
	}](c, "/api/v1/namespaces/carma/pods/carma-daemon-0")
	if !ok || len(pod.Status.ContainerStatuses) != 1 {
		c.t.Fatalf("the daemon's pod: %+v", pod)
	}
	return fmt.Sprint(pod.Metadata.UID, " ", pod.Status.ContainerStatuses[0].RestartCount)
}
