package jinja

import (
	"fmt"
	"strings"
	"time"
)

// strftime formats a time as C does in the C locale; the flags -, _, 0, ^ and # are GNU's. The time has
// no zone, as Python's datetime.now() has none.
func strftime(t time.Time, format string) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		start := i
		i++
		flag := byte(0)
		for strings.IndexByte("-_0^#", format[i]) >= 0 && i+1 < len(format) {
			flag = format[i]
			i++
		}
		s, pad, width, ok := timeField(t, format[i])
		switch {
		case !ok:
			s = format[start : i+1] // unknown: as it is
		case width > 0:
			switch flag {
			case '_':
				pad = ' '
			case '0':
				pad = '0'
			case '-':
				width = 0
			}
			for len(s) < width {
				s = string(pad) + s
			}
		case flag == '^':
			s = strings.ToUpper(s)
		case flag == '#':
			if format[i] == 'p' {
				s = strings.ToLower(s)
			} else {
				s = strings.ToUpper(s)
			}
		}
		b.WriteString(s)
	}
	return b.String()
}

// timeField returns one field; a width above 0 says that it is a number, how wide and padded with what.
func timeField(t time.Time, c byte) (s string, pad byte, width int, ok bool) {
	num := func(n, width int) (string, byte, int, bool) { return fmt.Sprint(n), '0', width, true }
	text := func(s string) (string, byte, int, bool) { return s, 0, 0, true }
	hour12 := (t.Hour()+11)%12 + 1
	isoYear, isoWeek := t.ISOWeek()
	monday := (int(t.Weekday()) + 6) % 7 // days since Monday
	switch c {
	case 'Y':
		return num(t.Year(), 1)
	case 'C':
		return num(t.Year()/100, 2)
	case 'y':
		return num(t.Year()%100, 2)
	case 'G':
		return num(isoYear, 1)
	case 'g':
		return num(isoYear%100, 2)
	case 'm':
		return num(int(t.Month()), 2)
	case 'd':
		return num(t.Day(), 2)
	case 'e':
		return fmt.Sprint(t.Day()), ' ', 2, true
	case 'H':
		return num(t.Hour(), 2)
	case 'k':
		return fmt.Sprint(t.Hour()), ' ', 2, true
	case 'I':
		return num(hour12, 2)
	case 'l':
		return fmt.Sprint(hour12), ' ', 2, true
	case 'M':
		return num(t.Minute(), 2)
	case 'S':
		return num(t.Second(), 2)
	case 'f':
		return num(t.Nanosecond()/1000, 6)
	case 'j':
		return num(t.YearDay(), 3)
	case 'U':
		return num((t.YearDay()+6-int(t.Weekday()))/7, 2)
	case 'W':
		return num((t.YearDay()+6-monday)/7, 2)
	case 'V':
		return num(isoWeek, 2)
	case 'u':
		return num(monday+1, 1)
	case 'w':
		return num(int(t.Weekday()), 1)
	case 's':
		return num(int(t.Unix()), 1)
	case 'B':
		return text(t.Month().String())
	case 'b', 'h':
		return text(t.Month().String()[:3])
	case 'A':
		return text(t.Weekday().String())
	case 'a':
		return text(t.Weekday().String()[:3])
	case 'p':
		return text(t.Format("PM"))
	case 'P':
		return text(t.Format("pm"))
	case 'Z', 'z':
		return text("")
	case 'n':
		return text("\n")
	case 't':
		return text("\t")
	case '%':
		return text("%")
	case 'D', 'x':
		return text(strftime(t, "%m/%d/%y"))
	case 'F':
		return text(strftime(t, "%Y-%m-%d"))
	case 'T', 'X':
		return text(strftime(t, "%H:%M:%S"))
	case 'R':
		return text(strftime(t, "%H:%M"))
	case 'r':
		return text(strftime(t, "%I:%M:%S %p"))
	case 'c':
		return text(strftime(t, "%a %b %e %H:%M:%S %Y"))
	}
	return "", 0, 0, false
}
