package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/foretoken/foretoken/internal/testmodel"
)

// A screen is foretoken on a terminal of its own, as a user sees it.
type screen struct {
	t      *testing.T
	master *os.File
	cmd    *exec.Cmd
	unread []byte
}

func openScreen(t *testing.T, args ...string) *screen {
	t.Helper()
	return openScreenOf(t, 80, args...)
}

func openScreenOf(t *testing.T, columns uint16, args ...string) *screen {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close() })
	fd := int(master.Fd()) // makes it blocking, which is fine here
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns})
	}
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprint("/dev/pts/", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer slave.Close()
	s := &screen{t: t, master: master, cmd: exec.Command("foretoken", args...)}
	s.cmd.Env = append(os.Environ(), "FORETOKEN_HOME="+filepath.Join(t.TempDir(), "store"))
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = slave, slave, slave
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// A test that waits for what does not come ends all the same.
	watchdog := time.AfterFunc(time.Minute, func() { s.cmd.Process.Kill() })
	t.Cleanup(func() {
		watchdog.Stop()
		s.cmd.Process.Kill()
	})
	return s
}

// expect waits for a text and returns what came before it.
func (s *screen) expect(text string) string {
	s.t.Helper()
	buf := make([]byte, 4096)
	for {
		if before, after, ok := bytes.Cut(s.unread, []byte(text)); ok {
			s.unread = after
			return string(before)
		}
		n, err := s.master.Read(buf)
		if err != nil {
			s.t.Fatalf("%q did not come: %v after %q", text, err, s.unread)
		}
		s.unread = append(s.unread, buf[:n]...)
	}
}

func (s *screen) typed(keys string) {
	s.t.Helper()
	if _, err := s.master.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

// ended checks that the program has ended well. Reading to the end lets it
// finish its writes.
func (s *screen) ended() {
	s.t.Helper()
	buf := make([]byte, 4096)
	for {
		if _, err := s.master.Read(buf); err != nil {
			break
		}
	}
	if err := s.cmd.Wait(); err != nil {
		s.t.Errorf("the chat ended with %v", err)
	}
}

// promptTokens returns the length of the prompt that --verbose tells of.
func (s *screen) promptTokens() (n int) {
	s.t.Helper()
	s.expect("prompt: ")
	if _, err := fmt.Sscan(s.expect(" tokens in"), &n); err != nil {
		s.t.Fatal(err)
	}
	s.expect(">>> ")
	return n
}

func TestChat(t *testing.T) {
	const ctrlD = "\x04"
	dir := testmodel.Safetensors(t, testmodel.Family("llama"))
	s := openScreen(t, "run", dir, "--max-tokens", "2", "--logit-bias", "65=100", "--verbose")
	s.expect(dir + " answers. /help lists commands")
	s.expect(">>> ")

	s.typed("hello\r")
	s.expect("AA\r\n")
	first := s.promptTokens()
	s.typed("hello\r")
	if second := s.promptTokens(); second <= first {
		t.Errorf("the second prompt has %d tokens, the first %d: it lacks what was said", second, first)
	}
	s.typed("/clear\r")
	s.expect(">>> ")
	s.typed("hello\r")
	if again := s.promptTokens(); again != first {
		t.Errorf("after /clear the prompt has %d tokens, want %d as at first", again, first)
	}

	// Several lines make one message.
	s.typed("/clear\r")
	s.expect(">>> ")
	s.typed("\"\"\"he\r")
	s.expect("... ")
	s.typed("\r")
	s.expect("... ")
	s.typed("llo\"\"\"\r")
	s.expect("AA\r\n")
	if n := s.promptTokens(); n <= first {
		t.Errorf("with two line ends in it the prompt has %d tokens, without %d", n, first)
	}
	s.typed("/clear\r")
	s.expect(">>> ")
	s.typed("a\\\r")
	s.expect("... ")
	s.typed("b\r")
	s.expect("AA\r\n")
	s.promptTokens()

	// So does what is pasted, which Enter sends.
	s.typed("/clear\r")
	s.expect(">>> ")
	s.typed("\x1b[200~a\rb\x1b[201~")
	s.expect("... ")
	s.typed("\r")
	s.expect("AA\r\n")
	s.promptTokens()

	s.typed("/help\r")
	s.expect("/bye     end the chat")
	s.expect(">>> ")
	s.typed("/hepl\r")
	s.expect("No such command")
	s.expect(">>> ")
	s.typed("/set temperature 0\r")
	s.expect("No such command")
	s.expect(">>> ")
	s.typed("/etc/hosts is what?\r") // a message
	s.expect("AA\r\n")
	s.promptTokens()
	s.typed(ctrlD)
	s.ended()
}

// Ctrl-C stops the answer and not the chat; at the prompt it ends the chat
// when it comes twice.
func TestChatInterrupt(t *testing.T) {
	const ctrlC = "\x03"
	s := openScreen(t, "run", endless(t), "--logit-bias", "65=100", "--ignore-eos", "--verbose")
	s.expect(">>> ")
	longest := 0
	stopped := func(message string) {
		t.Helper()
		s.typed(message)
		s.expect(strings.Repeat("A", 100))
		s.typed(ctrlC)
		n := s.promptTokens()
		if n <= longest+100 && longest > 0 {
			t.Errorf("a prompt of %d tokens after one of %d and an answer of 100 or more", n, longest)
		}
		longest = n
	}
	stopped("hello\r")
	stopped("hello again\r")
	s.typed("never sent" + ctrlC)
	s.expect("Ctrl-C again")
	s.expect(">>> ")
	s.typed("/help\r") // not what was typed before
	s.expect("/bye ")
	s.expect(">>> ")
	stopped("\x1b[A\x1b[A\r") // two up in the history: hello again
	s.typed(ctrlC)
	s.expect("Ctrl-C again")
	s.expect(">>> ")
	s.typed(ctrlC)
	s.ended()
}

// A message that does not fit is refused, and the chat goes on.
func TestChatTooLong(t *testing.T) {
	dir := testmodel.Safetensors(t, testmodel.Family("llama"))
	s := openScreen(t, "run", dir, "--max-tokens", "2", "--logit-bias", "65=100", "--max-model-len", "60")
	s.expect(">>> ")
	s.typed("hi\r")
	s.expect("AA\r\n")
	s.expect(">>> ")
	s.typed(strings.Repeat("x", 80) + "\r")
	s.expect("foretoken: the prompt has")
	s.expect("/clear starts a new one")
	s.expect(">>> ")
	s.typed("/clear\r")
	s.expect(">>> ")
	s.typed("hi\r")
	s.expect("AA\r\n")
	s.expect(">>> ")
	s.typed("/bye\r")
	s.ended()
}

// Tokens that were drafted are green, on a terminal whose user wants colours, and
// the conversation goes on without them.
func TestChatShowsDrafts(t *testing.T) {
	dir := testmodel.Safetensors(t, testmodel.Family("llama"))
	args := []string{"run", dir, "--max-tokens", "20", "--ignore-eos", "--logit-bias", "65=100", "--speculative-config", `{"method": "ngram", "adaptive": false}`}
	ask := func(before string, more ...string) (turns []int) {
		t.Helper()
		s := openScreen(t, append(args, more...)...)
		s.expect(">>> ")
		for range 2 {
			s.typed("hello\r")
			s.expect(before)
			if more == nil {
				s.expect(">>> ")
				continue
			}
			turns = append(turns, s.promptTokens())
		}
		s.typed("/bye\r")
		s.ended()
		return turns
	}
	const green, plain = "\x1b[32mA\x1b[39m\x1b[32mA\x1b[39m", "AAAAAAAAAAAAAAAAAAAA\r\n"
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	coloured := ask(green, "--verbose")
	ask(plain)
	t.Setenv("NO_COLOR", "1")
	if uncoloured := ask(plain, "--verbose"); !slices.Equal(coloured, uncoloured) {
		t.Errorf("prompts of %v tokens, without colours %v", coloured, uncoloured)
	}
}
