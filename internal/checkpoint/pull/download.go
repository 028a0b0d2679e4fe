package pull

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// A download is one file to fetch over HTTP.
type download struct {
	url   string
	token string // for the host of url only
	name  string // its place, relative to the root it is written to
	want  want
	gguf  bool                       // the content must begin like a GGUF file
	deny  func(*http.Response) error // explains answers other than 200 and 206
}

const (
	copyBuffer = 1 << 20
	ggufMagic  = "GGUF"
)

// report gets the bytes of a file that have arrived, and all of them (0 while unknown).
type report func(done, total int64)

// download fetches a file into root, going on where an earlier attempt was cut, and returns it verified and in its
// place. On any error but a wrong digest the bytes that arrived stay for the next attempt.
func (s *Store) download(ctx context.Context, root *os.Root, d download, report report) (File, error) {
	p, err := openPartial(ctx, root, d.name, d.want)
	if err != nil {
		return File{}, err
	}
	defer p.close()
	resumed := p.n > 0
	for {
		if err := s.receive(ctx, p, d, report); err != nil {
			return File{}, err
		}
		damaged := p.verify()
		if damaged == nil {
			return p.commit()
		}
		if err := p.restart(); err != nil {
			return File{}, err
		}
		// What was pieced together may mix two versions; what came in this run alone is what the server has.
		if !resumed {
			return File{}, fmt.Errorf("%w; nothing was kept", damaged)
		}
		resumed = false
	}
}

// receive repeats transfer until the file is whole.
func (s *Store) receive(ctx context.Context, p *partial, d download, report report) error {
	most, reached := p.n, false
	for tries := 1; ; tries++ {
		if p.n == d.want.Size {
			return nil
		}
		err := s.transfer(ctx, p, d, report)
		if err == nil {
			return nil
		}
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		if p.n > most {
			most, reached, tries = p.n, true, 1
		}
		// A host that cannot be reached is given up at once, unless it was there a moment ago.
		var again transient
		var gone *unreachable
		if retry := errors.As(err, &again) || reached && errors.As(err, &gone); !retry || tries >= maxTries {
			return err
		}
		if err := s.rest(ctx, again, tries); err != nil {
			return err
		}
	}
}

var errStalled = errors.New("no byte arrived for a while")

// transfer makes one request for what is missing and appends what arrives.
func (s *Store) transfer(ctx context.Context, p *partial, d download, report report) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	header := http.Header{}
	if p.n > 0 && !p.want.digest() {
		// No digest will tell whether old and new bytes belong together, so the server must: If-Range makes it send
		// the whole file when the file has changed.
		if tag := p.tag(); tag != "" {
			header.Set("If-Range", tag)
		} else if err := p.restart(); err != nil {
			return err
		}
	}
	if p.n > 0 {
		header.Set("Range", fmt.Sprintf("bytes=%d-", p.n))
	}
	resp, err := s.get(ctx, http.MethodGet, d.url, d.token, header)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	total, err := p.accept(resp, d)
	if err != nil {
		return err
	}
	if free, ok := s.free(p.root.Name()); ok && total-p.n > free {
		return &diskError{p.root.Name(), fmt.Errorf("%s more are needed, %s are free", ByteSize(total-p.n), ByteSize(free))}
	}

	stall := time.AfterFunc(s.stall, func() { cancel(errStalled) })
	defer stall.Stop()
	cut := func(err error) error {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return transient{error: fmt.Errorf("the connection to %s was cut after %s: %w", resp.Request.URL.Host, ByteSize(p.n), err)}
	}
	report(p.n, max(total, 0))
	buf := make([]byte, copyBuffer)
	if d.gguf && p.n == 0 {
		head := buf[:len(ggufMagic)]
		if n, err := io.ReadFull(resp.Body, head); err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
			return cut(err)
		} else if string(head[:n]) != ggufMagic {
			return fmt.Errorf("%s sent no GGUF file: it begins with %q", resp.Request.URL.Host, head[:n])
		}
		if _, err := p.Write(head); err != nil {
			return err
		}
	}
	for {
		n, err := resp.Body.Read(buf)
		stall.Reset(s.stall)
		if total >= 0 && p.n+int64(n) > total {
			return errors.Join(fmt.Errorf("%s sent more than the %d bytes it announced", resp.Request.URL.Host, total), p.restart())
		}
		if _, err := p.Write(buf[:n]); err != nil {
			return err
		}
		report(p.n, max(total, 0))
		switch {
		case err == io.EOF && (total < 0 || p.n == total):
			return nil
		case err == io.EOF:
			return cut(io.ErrUnexpectedEOF)
		case err != nil:
			return cut(err)
		}
	}
}

// accept checks the header of an answer against what is on disk and what is wanted, and returns the file's size,
// -1 while unknown. It drops what is on disk only for an answer that replaces it.
func (p *partial) accept(resp *http.Response, d download) (total int64, err error) {
	host, have := resp.Request.URL.Host, p.n
	switch resp.StatusCode {
	case http.StatusOK:
		have = 0 // nothing was on disk, the server ignored the range, or the file has changed
	case http.StatusPartialContent:
		var from, to int64
		if n, _ := fmt.Sscanf(resp.Header.Get("Content-Range"), "bytes %d-%d/", &from, &to); n != 2 || from != have {
			return 0, errors.Join(transient{error: fmt.Errorf("%s sent another range than the one asked for", host)}, p.restart())
		}
	case http.StatusRequestedRangeNotSatisfiable:
		return 0, errors.Join(transient{error: fmt.Errorf("%s has fewer bytes than arrived before", host)}, p.restart())
	default:
		return 0, d.deny(resp)
	}
	if err := refuseWebPage(resp); err != nil {
		return 0, err
	}
	total = -1
	if resp.ContentLength >= 0 {
		total = have + resp.ContentLength
	}
	if p.want.Size >= 0 && total >= 0 && total != p.want.Size {
		return 0, fmt.Errorf("%s offers %d bytes for %s, expected %d", host, total, p.name, p.want.Size)
	}
	if resp.StatusCode == http.StatusOK {
		tag := resp.Header.Get("ETag")
		if tag == "" || strings.HasPrefix(tag, "W/") { // a weak tag does not vouch for every byte
			tag = resp.Header.Get("Last-Modified")
		}
		if err := errors.Join(p.restart(), p.setTag(tag)); err != nil {
			return 0, err
		}
	}
	return max(total, p.want.Size), nil
}
