package pull

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	maxTries = 5 // in a row, without a byte more than before
	maxPause = 30 * time.Second

	// connectTimeout bounds each of connecting and the TLS handshake, so that a network which swallows packets is
	// given up within ten seconds and the next source gets its turn.
	connectTimeout = 5 * time.Second
	// answerTimeout bounds the wait for the header of an answer: mirrors fetch from upstream first.
	answerTimeout = 30 * time.Second
)

func newClient() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone() // keeps HTTPS_PROXY and NO_PROXY
	t.DialContext = (&net.Dialer{Timeout: connectTimeout}).DialContext
	t.TLSHandshakeTimeout = connectTimeout
	t.ResponseHeaderTimeout = answerTimeout
	return &http.Client{Transport: t, CheckRedirect: checkRedirect}
}

// checkRedirect keeps what identifies the user with the host it was meant for. net/http alone would send the
// Authorization header on to subdomains and other ports, and the full address, query included, as Referer.
func checkRedirect(req *http.Request, via []*http.Request) error {
	from := via[0].URL
	switch {
	case req.Method == http.MethodHead && req.Response.Header.Get("X-Linked-Etag") != "":
		return http.ErrUseLastResponse // the hub has said what its content network would not know
	case len(via) >= 10:
		return errors.New("more than 10 redirects")
	case from.Scheme == "https" && req.URL.Scheme != "https":
		return fmt.Errorf("redirected from https to %s://%s", req.URL.Scheme, req.URL.Host)
	}
	if req.URL.Scheme != from.Scheme || req.URL.Host != from.Host {
		req.Header.Del("Authorization")
		req.Header.Del("Referer")
	}
	return nil
}

// get asks for an address. Its errors tell the user what stands in the way.
func (s *Store) get(ctx context.Context, method, address, token string, header http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return nil, err
	}
	if header != nil {
		req.Header = header
	}
	req.Header.Set("User-Agent", "foretoken")
	req.Header.Set("Accept-Encoding", "identity") // sizes and ranges count the file's bytes
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return nil, cause
		}
		return nil, &unreachable{explainNetwork(req.URL.Host, err)}
	}
	return resp, nil
}

// unreachable says why a host could not be asked.
type unreachable struct{ error }

func (u *unreachable) Unwrap() error { return u.error }

// explainNetwork turns what net/http reports into the host and the obstacle.
func explainNetwork(host string, err error) error {
	if op, ok := errors.AsType[*url.Error](err); ok {
		err = op.Err
	}
	var dns *net.DNSError
	var proxy *net.OpError
	var unknown x509.UnknownAuthorityError
	var verify *tls.CertificateVerificationError
	var timeout net.Error
	switch {
	case errors.As(err, &proxy) && proxy.Op == "proxyconnect":
		return fmt.Errorf("no way to %s through the proxy of HTTPS_PROXY: %w", host, proxy.Err)
	case errors.As(err, &dns):
		return fmt.Errorf("the name %s cannot be resolved: no network, or only through a proxy (HTTPS_PROXY)", dns.Name)
	case errors.As(err, &unknown):
		return fmt.Errorf("the certificate of %s is signed by nobody known here (%w); if a company proxy rewrites traffic, name its root certificate in SSL_CERT_FILE", host, err)
	case errors.As(err, &verify):
		return fmt.Errorf("the certificate of %s is not valid for it: %w", host, err)
	case errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("no answer from %s in time", host)
	}
	return fmt.Errorf("no way to %s: %w", host, err)
}

// transient marks an error after which the same request may succeed.
type transient struct {
	error
	after time.Duration // what the server asked for; 0: it did not say
}

func (t transient) Unwrap() error { return t.error }

// retry repeats a request as long as its error is transient.
func (s *Store) retry(ctx context.Context, request func() error) error {
	for tries := 1; ; tries++ {
		err := request()
		var again transient
		if !errors.As(err, &again) || tries >= maxTries {
			return err
		}
		if err := s.rest(ctx, again, tries); err != nil {
			return err
		}
	}
}

// rest waits before the next try: as long as the server asked for, or twice as long as before the last one.
func (s *Store) rest(ctx context.Context, t transient, tries int) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(max(t.after, min(maxPause, s.pause<<(tries-1)))):
		return nil
	}
}

// statusError describes an answer other than the one hoped for.
func statusError(resp *http.Response) error {
	host := resp.Request.URL.Host
	detail := ""
	if m := resp.Header.Get("X-Error-Message"); m != "" {
		detail = ": " + printable(m)
	}
	err := fmt.Errorf("%s answered %s%s", host, printable(resp.Status), detail)
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		after, _ := time.ParseDuration(resp.Header.Get("Retry-After") + "s") // dates are rare and not worth waiting for
		return transient{err, max(0, min(after, maxPause))}
	case http.StatusProxyAuthRequired:
		return fmt.Errorf("%w: put the proxy's user and password into HTTPS_PROXY", err)
	}
	return err
}

// refuseWebPage catches the log-in and block pages of proxies, which come with status 200.
func refuseWebPage(resp *http.Response) error {
	if kind := strings.ToLower(resp.Header.Get("Content-Type")); strings.HasPrefix(kind, "text/html") {
		return fmt.Errorf("%s answered with a web page instead of the file: a log-in or block page of a proxy?", resp.Request.URL.Host)
	}
	return nil
}

// readAll reads a small answer whole.
func readAll(r io.Reader, limit int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("answer is longer than %s", ByteSize(limit))
	}
	return b, err
}
