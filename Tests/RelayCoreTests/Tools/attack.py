#!/usr/bin/env python3
"""Attacks the relay's replies: writes messages with a planted inbox in every form that issue 4 names and some more, and reads what
came out with decoders of its own (Python's, not the relay's).

  attack.py generate SEED COUNT [TOKEN…]   a JSON object a line: id, inbox, message (base64), keeps (words that have to survive), refusable,
                                           token (that must not survive) and innocent (the body has to leave as it came)
  attack.py check LEAKCHECK FILE       FILE: the same objects with `output` (base64) or `refused`; prints a line for each problem
"""
import base64, codecs, email, gzip, html, importlib.util, io, json, quopri, random, re, sys, unicodedata, urllib.parse, zipfile, zlib

CRLF = '\r\n'


# ---------------------------------------------------------------- inboxes

def word(r, n, letters='abcdefghijklmnopqrstuvwxyz'):
    return ''.join(r.choice(letters) for _ in range(n))


def inbox(r):
    local = r.choice([
        lambda: word(r, 5) + '.' + word(r, 6), lambda: word(r, 7) + str(r.randrange(10, 99)), lambda: word(r, 4),
        lambda: "o'" + word(r, 6) + '.' + word(r, 2), lambda: str(r.randrange(10**6, 10**8)), lambda: word(r, 3) + '_' + word(r, 7), lambda: word(r, 6) + '-' + word(r, 4), lambda: word(r, 9)])()
    domain = r.choice([
        lambda: word(r, 9) + '.example', lambda: word(r, 6) + '.' + word(r, 6) + '.example', lambda: 'gmail.com', lambda: 'gmx.de',
        lambda: word(r, 4) + '-' + word(r, 5) + '.example', lambda: 'b\u00fc' + word(r, 7) + '.example'])()
    return local, domain


def is_distinctive(local):
    """Whether a local part gives its owner away where it stands alone, as leakcheck.py counts it."""
    return len(local) >= 6 and re.search(r'[0-9._+-]', local) is not None


def ascii_domain(domain):
    return domain.encode('idna').decode()


# ---------------------------------------------------------------- spellings of an address in text

def mixed(r, s):
    return ''.join(c.upper() if r.random() < .5 else c for c in s)


def numeric(r, c):
    return r.choice([f'&#{ord(c)};', f'&#{ord(c):04d};', f'&#x{ord(c):x};', f'&#X{ord(c):X};'])


def plain_forms(r, l, d):
    """(name, text, refusable): what reads as the address in any text."""
    a = f'{l}@{d}'
    # White space joins only at the separator: inside a word it makes other words.
    yield 'raw', a
    yield 'upper', a.upper()
    yield 'mixed', mixed(r, a)
    yield 'angle', f'<{a}>'
    yield 'mailto', f'mailto:{a}?subject=Hello'
    yield 'mailto-percent', f'mailto:{l}%40{d}'
    yield 'percent', urllib.parse.quote(a, safe='')
    yield 'percent-lower', a.replace('@', '%40').replace('.', '%2e')
    yield 'percent-twice', f'{l}%2540{d}'
    yield 'percent-all', ''.join(f'%{b:02X}' for b in a.encode())
    yield 'url', f'https://www.example.net/u?e={l}%40{d}&x=1'
    yield 'url-plus', f'https://www.example.net/u/{l}@{d}/unsubscribe'
    yield 'equals40', f'{l}=40{d}'
    yield 'verp', f'bounce+{l}={d}@list.example.net'
    yield 'verp-reversed', f'SRS0=abc=de={d}={l}@list.example.net'
    yield 'hash', f'{l}#{d}'
    yield 'at-word', f'{l} at {d}'
    yield 'at-bracket', f'{l}[at]{d}'
    yield 'at-paren', f'{l}(at){d}'
    yield 'at-a', f'{l}(a){d}'
    yield 'backslash', f'{l}\\@{d}'
    yield 'json', f'{{"mail":"{l}\\u0040{d}"}}'
    yield 'js-hex', f"var a='{l}\\x40{d}';"
    yield 'quoted', f'"{l}"@{d}'
    yield 'spaces', f'{l} @ {d}'
    yield 'comment', f'{l}(home)@{d}'
    yield 'comment-behind', f'{l}@(home){d}'
    yield 'fullwidth-at', f'{l}\uff20{d}'
    yield 'small-at', f'{l}\ufe6b{d}'
    yield 'fullwidth', ''.join(chr(ord(c) + 0xfee0) if '!' <= c <= '~' else c for c in a)
    yield 'zero-width', '\u200b'.join(a)
    yield 'soft-hyphen', '\u00ad'.join([a[:3], a[3:]])
    yield 'word-joiner', f'{l}\u2060@\u2060{d}'
    yield 'zwnj', f'{l}\u200c@\u200d{d}'
    yield 'bidi', f'\u202a{l}\u202c@{d}'
    yield 'tag', f'{l}+shop@{d}'
    yield 'glued-punctuation', f'Mail:{a}!'
    yield 'in-brackets', f'[{a}]'
    yield 'trailing-dot', f'{a}.'
    yield 'table', f'|{a}|'
    yield 'json-slash', f'"user\\/{a}"'
    yield 'break-behind-at', f'{l}@{CRLF}{d}'
    yield 'break-before-at', f'{l}{CRLF}@{d}'
    yield 'quoted-break', f'> write to {l}@{CRLF}> {d} please'
    yield 'ideographic-dot', f'{l}@' + d.replace('.', '\u3002')
    yield 'fullwidth-dot', f'{l}@' + d.replace('.', '\uff0e')
    if not d.isascii():
        p = ascii_domain(d)
        yield 'punycode', f'{l}@{p}'
        yield 'punycode-upper', f'{l}@{p.upper()}'
    if d == 'gmail.com':
        s = l.replace('.', '')
        yield 'dots', '.'.join(s) + '@gmail.com'
        yield 'googlemail', f'{s}@googlemail.com'
        yield 'dots-tag', f'{s[:2]}.{s[2:]}+x@GoogleMail.com'
        yield 'dots-percent', f'{s[:2]}.{s[2:]}%40googlemail.com'
    if is_distinctive(l):
        yield 'bare', f'user {l} wrote'
    yield 'base64', 'token ' + base64.b64encode(f'user={a}&ok=1'.encode()).decode()
    yield 'base64-url', 'https://x.example.net/?u=' + base64.urlsafe_b64encode(a.encode()).decode().rstrip('=') + '&v=1'
    yield 'encoded-word', '=?utf-8?q?' + a.replace('@', '=40') + '?='
    yield 'encoded-word-b', '=?utf-8?b?' + base64.b64encode(a.encode()).decode() + '?='


def html_forms(r, l, d):
    a = f'{l}@{d}'
    yield 'commat', f'{l}&commat;{d}'
    yield 'decimal', f'{l}&#64;{d}'
    yield 'decimal-no-semicolon', f'{l}&#64{d}'if not d[0].isdigit() else f'{l}&#64;{d}'
    yield 'hex', f'{l}&#x40;{d}'
    yield 'hex-upper', f'{l}&#X0040;{d}'
    yield 'zeros', f'{l}&#0000000000064;{d}'
    yield 'all', ''.join(numeric(r, c) for c in a)
    yield 'some', ''.join(numeric(r, c) if r.random() < .4 else c for c in a)
    yield 'period', f'{l}&commat;' + d.replace('.', '&period;')
    yield 'escaped-twice', f'{l}&amp;#64;{d}'
    yield 'hyphens', f'{l}&#64;' + d.replace('-', '&hyphen;')
    yield 'href', f'<a href="mailto:{l}&#64;{d}">write</a>'
    yield 'href-percent', f'<a href=\'mailto:{l}%40{d}\'>write</a>'
    yield 'href-all', '<a href="' + ''.join(f'&#{ord(c)};' for c in 'mailto:' + a) + '">write</a>'
    yield 'comment', f'<!-- {a} -->'
    yield 'comment-inside', f'{l}<!-- x -->@<!-- y -->{d}'
    yield 'tags-inside', f'<b>{l}</b><i>@</i><b>{d}</b>'
    yield 'wbr', f'{l}<wbr>@<wbr/>{d}'
    yield 'span-letters', ''.join(f'<span>{c}</span>' for c in a)
    yield 'zwsp-ref', f'{l}&#8203;@&ZeroWidthSpace;{d}'
    yield 'shy-ref', f'{a[:3]}&shy;{a[3:]}'
    yield 'data-url', '<img src="data:text/html;base64,' + base64.b64encode(f'<p>{a}</p>'.encode()).decode() + '">'
    yield 'data-percent', f'<iframe src="data:text/html,%3Cp%3E{l}%40{d}">'
    yield 'css', f'<style>p:after {{ content: "{l}\\40 {d}" }}</style>'
    yield 'css-long', f'<style>p:after {{ content: "{l}\\000040{d}" }}</style>'
    yield 'attribute', f'<img alt="{a}" title=\'{a.upper()}\' data-u={a}>'
    yield 'script-octal', f'<script>m="{l}\\100{d}"</script>'
    yield 'script-brace', f'<script>m="{l}\\u{{40}}{d}"</script>'
    yield 'nbsp', f'{l}&nbsp;@&nbsp;{d}'
    yield 'fullwidth-ref', f'{l}&#65312;{d}'
    yield 'cdata', f'<![CDATA[{a}]]>'
    yield 'tag-attr-gt', f'{l}<b title="x">@</b>{d}'
    yield 'newline-tag', f'{l}<br{CRLF}/>@{d}'


# ---------------------------------------------------------------- containers

KEEP = ['Rhabarber', 'Kaleidoskop', 'Zwiebelturm']


def frame(r, text, form=''):
    return (f'Dear team,{CRLF}{CRLF}{KEEP[0]} is what I ordered, and nothing else at all.{CRLF}{text}{CRLF}'
            f'{KEEP[1]}: 42 pieces, 100% of them broken; price = 12 + 3.{CRLF}--{CRLF}{KEEP[2]}{CRLF}')


def page(r, text):
    return (f'<html><head><title>Re: order</title></head><body class="a">{CRLF}<p>{KEEP[0]} &amp; more</p>{CRLF}<div>{text}</div>{CRLF}'
            f'<blockquote>{KEEP[1]}</blockquote><p>{KEEP[2]}</p></body></html>{CRLF}')


def quoted_printable(r, data, everything=False):
    out, column = '', 0
    lines = data.split(b'\r\n')
    for number, line in enumerate(lines):
        column = 0
        for index, byte in enumerate(line):
            last = index == len(line) - 1
            piece = f'={byte:02X}' if everything or byte in b'=' or byte > 126 or byte < 32 or (last and byte in b' \t') or r.random() < .05 else chr(byte)
            if column + len(piece) > 72 or r.random() < .04:
                out += '=' + CRLF
                column = 0
            out += piece
            column += len(piece)
        if number < len(lines) - 1:
            out += CRLF
    return out.encode()


def transfer(r, data, allows8=True):
    kind = r.choice(['qp', 'qp-all', 'base64', 'base64-odd', '8bit'])
    if kind == 'qp': return 'quoted-printable', quoted_printable(r, data)
    if kind == 'qp-all': return 'quoted-printable', quoted_printable(r, data, True)
    if kind == 'base64': return 'base64', base64.encodebytes(data).replace(b'\n', b'\r\n')
    if kind == 'base64-odd':
        text, n = base64.b64encode(data), r.choice([60, 61, 75, 64])
        return 'base64', b'\r\n'.join(text[i:i + n] for i in range(0, len(text), n)) + b'\r\n'
    return ('8bit' if any(b > 126 for b in data) else '7bit'), data


def charset_of(r, text):
    choices = ['utf-8', 'utf-8', 'UTF-8', 'utf-16', 'utf-16le', 'utf-16be', 'utf-7', 'gb18030', 'utf-32']
    for name, codec in [('iso-8859-1', 'latin-1'), ('windows-1252', 'cp1252'), ('us-ascii', 'ascii'), ('iso-2022-jp', 'iso2022_jp'),
                        ('iso-2022-kr', 'iso2022_kr'), ('shift_jis', 'shift_jis'), ('euc-jp', 'euc_jp'), ('big5', 'big5'), ('koi8-r', 'koi8_r'),
                        ('hz-gb-2312', 'hz'), ('cp037', 'cp037'), ('iso-8859-15', 'iso8859_15'), ('macintosh', 'mac_roman')]:
        try:
            text.encode(codec)
            choices.append(name)
        except UnicodeError:
            pass
    name = r.choice(choices)
    codec = {'utf-16': 'utf-16', 'hz-gb-2312': 'hz', 'macintosh': 'mac_roman'}.get(name.lower(), name)
    data = text.encode(codec)
    return name, data


def part(r, kind, text, extra=''):
    """A text part as header fields and body."""
    charset, data = charset_of(r, text)
    encoding, body = transfer(r, data)
    if encoding in ('7bit', '8bit') and (charset.lower().startswith(('utf-16', 'utf-32', 'cp037'))):
        encoding, body = 'base64', base64.encodebytes(data).replace(b'\n', b'\r\n')
    return (f'Content-Type: {kind}; charset={charset}{extra}{CRLF}Content-Transfer-Encoding: {encoding}{CRLF}').encode(), body


def folded(r, text):
    """Content lines folded anywhere, as iCalendar allows, never within a character."""
    lines = []
    for line in text.split(CRLF):
        out, column = '', 0
        for c in line:
            if column > 60 or (column > 1 and r.random() < .06):
                out += CRLF + r.choice([' ', '\t'])
                column = 1
            out += c
            column += len(c.encode())
        lines.append(out)
    return CRLF.join(lines)


def calendar(r, l, d):
    a = f'{l}@{d}'
    lines = [
        'BEGIN:VCALENDAR', 'VERSION:2.0', 'METHOD:' + r.choice(['REPLY', 'COUNTER', 'REQUEST']), 'BEGIN:VEVENT', 'UID:1@app.example',
        f'ATTENDEE;CN="{a}";PARTSTAT=ACCEPTED:mailto:{a}', f'ATTENDEE;SENT-BY="MAILTO:{a.upper()}";EMAIL={a}:invalid:nomail',
        f'ORGANIZER;X-A="{l}%40{d}":mailto:boss@app.example', f'X-MS-OLK-SENDER;CN={a}:mailto:{mixed(r, a)}', f'SUMMARY:{KEEP[0]}\\, {KEEP[1]}',
        f'DESCRIPTION:{KEEP[2]}\\n{a}\\nbye', f'X-ALT-DESC;FMTTYPE=text/html:<a href="mailto:{l}&#64;{d}">x</a>', 'END:VEVENT', 'END:VCALENDAR', '']
    return folded(r, CRLF.join(lines))


def vcard(r, l, d):
    a = f'{l}@{d}'
    return CRLF.join([
        'BEGIN:VCARD', 'VERSION:2.1', f'FN:{KEEP[0]}', f'EMAIL;INTERNET;ENCODING=QUOTED-PRINTABLE:{l}=40{d}',
        f'EMAIL;ENCODING=QUOTED-PRINTABLE:{l}=40={CRLF}{d}', f'EMAIL;TYPE=home:{a}', f'item1.EMAIL:{mixed(r, a)}', f'IMPP:xmpp:{l}%40{d}',
        f'NOTE;ENCODING=BASE64:{base64.b64encode(a.encode()).decode()}', f'ORG:{KEEP[1]}', f'TITLE:{KEEP[2]}', 'END:VCARD', ''])


def words_q(r, text):
    """The text as encoded words, broken at any character."""
    out, index = [], 0
    while index < len(text):
        n = r.randrange(1, 9)
        piece = text[index:index + n]
        index += n
        if r.random() < .5:
            out.append('=?utf-8?Q?' + ''.join(f'={b:02X}' if chr(b) in '=?_ @.' or b > 126 or r.random() < .2 else chr(b) for b in piece.encode()) + '?=')
        else:
            out.append(r.choice(['=?UTF-8?B?', '=?utf-8?b?']) + base64.b64encode(piece.encode()).decode() + '?=')
    return r.choice([' ', CRLF + ' ', CRLF + '\t']).join(out)


def parameter(r, name, value):
    """A parameter as RFC 2231 allows to write it, and as programs write it against RFC 2047."""
    kind = r.randrange(6)
    ascii_value = re.sub('[a-z\u00fc]+[.]example', lambda m: ascii_domain(m.group(0)), value)
    if kind == 0: return f'; {name}="{ascii_value}"'
    if kind == 1: return f"; {name}*=utf-8'en'{urllib.parse.quote(value, safe='')}"
    if kind == 2:
        pieces, out = [value[i:i + 5] for i in range(0, len(value), 5)], ''
        for n, piece in enumerate(pieces):
            if n == 0: out += f";{CRLF}\t{name}*0*=utf-8''{urllib.parse.quote(piece, safe='')}"
            elif r.random() < .5 and piece.isascii(): out += f';{CRLF}\t{name}*{n}="{piece}"'
            else: out += f";{CRLF}\t{name}*{n}*={urllib.parse.quote(piece, safe='')}"
        return out
    if kind == 3:
        pieces = [ascii_value[i:i + 4] for i in range(0, len(ascii_value), 4)]
        return ''.join(f';{CRLF} {name}*{n}="{p}"' for n, p in enumerate(pieces))
    if kind == 4: return f'; {name}="{words_q(r, value)}"'
    return f'; {name}="' + ascii_value.replace('@', '\\@') + '"'


def zipped(name, data):
    out = io.BytesIO()
    with zipfile.ZipFile(out, 'w', zipfile.ZIP_DEFLATED) as z:
        z.writestr('a.txt', 'something else ' * 50)
        z.writestr(name, data)
    return out.getvalue()


def multipart(r, parts, subtype='mixed', preamble='', epilogue='', boundary=None):
    boundary = boundary or 'b' + word(r, 12)
    body = preamble.encode()
    for fields, data in parts:
        body += (CRLF if body else '').encode() + f'--{boundary}{CRLF}'.encode() + fields + b'\r\n' + data
    body += f'{CRLF}--{boundary}--{CRLF}'.encode() + epilogue.encode()
    return f'Content-Type: multipart/{subtype}; boundary="{boundary}"{CRLF}'.encode(), body


def attachment(r, kind, data, extra=''):
    return (f'Content-Type: {kind}{CRLF}Content-Transfer-Encoding: base64{CRLF}Content-Disposition: attachment{extra}{CRLF}').encode(), \
        base64.encodebytes(data).replace(b'\n', b'\r\n')


def odd_transfer(r, data):
    """Transfer encodings as programs write them against the rules; the last value: whether no two readers agree on it."""
    kind = r.choice(['label', 'label', 'unpadded', 'indented', 'pieces', 'blank-lines', 'one-line', 'stray', 'qp-lower', 'qp-spaces', 'qp-long', 'none'])
    lines = base64.encodebytes(data).replace(b'\n', b'\r\n')
    if kind == 'label': return r.choice(['BASE64', 'base64 ', 'base64 (mine)', 'Base64;', ' \r\n base64']), lines, False
    if kind == 'unpadded': return 'base64', lines.replace(b'=', b''), False
    if kind == 'indented': return 'base64', b''.join(b'  ' + l + b'\r\n' for l in lines.split()), False
    if kind == 'pieces':
        cut = len(data) // 2
        return 'base64', base64.encodebytes(data[:cut]).replace(b'\n', b'\r\n') + base64.encodebytes(data[cut:]).replace(b'\n', b'\r\n'), True
    if kind == 'blank-lines': return 'base64', lines.replace(b'\r\n', b'\r\n\r\n'), False
    if kind == 'one-line': return 'base64', base64.b64encode(data), False
    if kind == 'stray': return 'base64', lines[:20] + b'!' + lines[20:], True
    if kind == 'qp-lower': return 'Quoted-Printable', ''.join(chr(b) if chr(b).isalnum() or b in b'\r\n' else f'={b:02x}' for b in data).encode(), False
    if kind == 'qp-spaces': return 'quoted-printable', quoted_printable(r, data).replace(b'=\r\n', b'=  \t\r\n'), False
    if kind == 'qp-long': return 'QUOTED-PRINTABLE', data.replace(b'=', b'=3D').replace(b'@', b'=40'), False
    return None, data, False


def odd_type(r, kind):
    charset = r.choice(['utf-8', '"utf-8"', 'UTF-8 (Unicode)', "'utf-8'", 'utf8', 'utf-8; charset=utf-16', 'utf-8; format=flowed; x="a;b"'])
    return r.choice([f'{kind};charset={charset}', f'{kind.upper()} ; charset = {charset};', f'{kind} (text);\r\n\tcharset={charset}',
                     f'{kind}; name="a.txt"; charset={charset}', f'{kind}'])


def quotes(r, a):
    """Quoted mail as programs of different countries head it."""
    return r.choice([
        f'On Tue, 3 Nov 2026 at 10:12, Anna B. <{a}> wrote:{CRLF}> hello{CRLF}>> {a}{CRLF}', f'From: Anna [mailto:{a}]{CRLF}Sent: Monday{CRLF}To: x{CRLF}',
        f'Von: "Anna" <{a}>{CRLF}Gesendet: Montag{CRLF}Betreff: AW: x{CRLF}', f'Le mar. 3 nov. 2026 \u00e0 10:12, Anna <{a}> a \u00e9crit\u00a0:{CRLF}',
        f'-----Original Message-----{CRLF}From: {a}{CRLF}', f'2026\u5e7411\u67083\u65e5(\u706b) 10:12 Anna <{a}>:{CRLF}', f'From {a} Tue Nov  3 10:12:00 2026{CRLF}',
        f'*From:* Anna <{a} <mailto:{a}>>{CRLF}', f'[cid:x@y]{CRLF}Anna{CRLF}T +49 1{CRLF}E {a} | W example.org{CRLF}', f'Sent from my phone <{a}>{CRLF}',
        f'| {a} | 1 |{CRLF}|---|---|{CRLF}', f'`{a}` and **{a}** and [{a}](mailto:{a}){CRLF}', f'--- {a}{CRLF}+++ {a}{CRLF}@@ -1 +1 @@{CRLF}'])


def invitation(r, l, d):
    """Calendar answers as Google, Outlook and Apple write them."""
    a = f'{l}@{d}'
    attached = base64.b64encode(f'BEGIN:VCALENDAR\r\nX-B:{a}\r\nEND:VCALENDAR\r\n'.encode()).decode()
    lines = r.choice([
        ['PRODID:-//Google Inc//Google Calendar 70.9054//EN', 'VERSION:2.0', 'CALSCALE:GREGORIAN', 'METHOD:REPLY', 'BEGIN:VEVENT',
         'ORGANIZER;CN=Billing:mailto:billing@app.example', f'ATTENDEE;CUTYPE=INDIVIDUAL;ROLE=REQ-PARTICIPANT;PARTSTAT=ACCEPTED;CN={a};X-NUM-GUESTS=0:mailto:{a}',
         f'X-GOOGLE-CONFERENCE:https://meet.example/x?authuser={l}%40{d}'],
        ['METHOD:COUNTER', 'PRODID:Microsoft Exchange Server 2010', 'VERSION:2.0', 'BEGIN:VEVENT', f'ATTENDEE;PARTSTAT=TENTATIVE;CN="{a}":MAILTO:{a.upper()}',
         f'COMMENT;LANGUAGE=en-US:\\n{a}\\n', f'X-MICROSOFT-CDO-OWNERAPPTID:1', f'X-MS-OLK-SENDER;CN="Anna ({a})":invalid:nomail', f'X-OWNER;CN={a}:MAILTO:{a}'],
        ['CALSCALE:GREGORIAN', 'PRODID:-//Apple Inc.//macOS 15//EN', 'METHOD:REPLY', 'VERSION:2.0', 'BEGIN:VEVENT',
         f'ATTENDEE;CN="Anna";CUTYPE=INDIVIDUAL;EMAIL="{a}";PARTSTAT=ACCEPTED:mailto:{a}', f'X-CALENDARSERVER-ATTENDEE-COMMENT;X-CALENDARSERVER-ATTENDEE-REF="mailto:{a}":ok',
         f'ATTENDEE;EMAIL={a}:/principals/{l}%40{d}/', f'X-APPLE-STRUCTURED-DATA;VALUE=URI:{l}%40{d}'],
        ['VERSION:2.0', 'METHOD:REQUEST', 'BEGIN:VEVENT', f'ATTACH;ENCODING=BASE64;VALUE=BINARY;FMTTYPE=text/calendar:{attached}', f'CONTACT:{l}\\,{a}',
         f'URL:https://x.example.net/?a={l}%40{d}', f'BEGIN:VALARM', f'ATTENDEE:mailto:{a}', 'ACTION:EMAIL', 'END:VALARM']])
    lines = ['BEGIN:VCALENDAR'] + lines + [f'SUMMARY:{KEEP[0]}', f'DESCRIPTION:{KEEP[1]}', f'LOCATION:{KEEP[2]}', 'END:VEVENT', 'END:VCALENDAR', '']
    return folded(r, CRLF.join(lines))


def odd_multipart(r, first, hidden):
    """Structures that programs write against RFC 2046."""
    kind = r.choice(['unclosed', 'prefix', 'spaces', 'digest', 'no-header', 'form-data', 'lone-lf', 'blank-start', 'empty-boundary-lines', 'nested-same'])
    (f1, b1), (f2, b2) = first, hidden
    if kind == 'unclosed': return b'Content-Type: multipart/mixed; boundary=bb\r\n', b'--bb\r\n' + f1 + b'\r\n' + b1 + b'\r\n--bb\r\n' + f2 + b'\r\n' + b2
    if kind == 'prefix':
        inner = b'--bbb\r\n' + f2 + b'\r\n' + b2 + b'\r\n--bbb--\r\n'
        return b'Content-Type: multipart/mixed; boundary="bb"\r\n', b'--bb\r\n' + f1 + b'\r\n' + b1 + b'\r\n--bb\r\nContent-Type: multipart/alternative; boundary=bbb\r\n\r\n' + inner + b'\r\n--bb--\r\n'
    if kind == 'spaces': return b'Content-Type: multipart/mixed; boundary="a b"\r\n', b'--a b \t\r\n' + f1 + b'\r\n' + b1 + b'\r\n--a b\r\n' + f2 + b'\r\n' + b2 + b'\r\n--a b-- \r\n'
    if kind == 'digest': return b'Content-Type: multipart/digest; boundary=bb\r\n', b'--bb\r\n\r\nSubject: x\r\n' + f2 + b'\r\n' + b2 + b'\r\n--bb--\r\n'
    if kind == 'no-header': return b'Content-Type: multipart/mixed; boundary=bb\r\n', b'--bb\r\n\r\nplain text first\r\n--bb\r\n' + f2 + b'\r\n' + b2 + b'\r\n--bb--\r\n'
    if kind == 'form-data': return b'Content-Type: multipart/form-data; boundary=bb\r\n', b'--bb\r\nContent-Disposition: form-data; name="a"\r\n' + f2 + b'\r\n' + b2 + b'\r\n--bb--\r\n'
    if kind == 'lone-lf': return b'Content-Type: multipart/mixed; boundary=bb\r\n', b'--bb\n' + f1.replace(b'\r\n', b'\n') + b'\n' + b1 + b'\n--bb\n' + f2.replace(b'\r\n', b'\n') + b'\n' + b2 + b'\n--bb--\n'
    if kind == 'blank-start': return b'Content-Type: multipart/mixed; boundary=bb\r\n', b'\r\n\r\n--bb\r\n' + f2 + b'\r\n' + b2 + b'\r\n--bb--\r\n\r\n'
    if kind == 'empty-boundary-lines': return b'Content-Type: multipart/mixed; boundary=bb\r\n', b'--bb\r\n--bb\r\n' + f2 + b'\r\n' + b2 + b'\r\n--bb\r\n--bb--\r\n'
    return b'Content-Type: multipart/mixed; boundary=bb\r\n', b'--bb\r\nContent-Type: multipart/mixed; boundary=bb\r\n\r\n--bb\r\n' + f2 + b'\r\n' + b2 + b'\r\n--bb--\r\n'


# ---------------------------------------------------------------- cases

def build(r, number, planted=None):
    """One message: (kind, inbox, header lines + body, refusable).

    planted: what takes the inbox's place in the message, as (local part, domain)."""
    l, d = planted or inbox(r)
    a = f'{l}@{d}'
    subject, fields, refusable = 'Re: your order', '', False
    shape = r.choice(['plain'] * 8 + ['html'] * 8 + ['calendar', 'calendar', 'vcard', 'subject', 'subject', 'filename', 'filename', 'nested', 'nested',
                      'report', 'receipt', 'flowed', 'alternative', 'preamble', 'boundary', 'content-id', 'ids', 'rtf', 'json', 'zip', 'gzip-text',
                      'gzip', 'json-gzip', 'uu', 'uu-preamble', 'octet', 'xml', 'description', 'names', 'mislabelled', 'bom', 'csv', 'rfc822-headers', 'signed',
                      'image', 'cte-odd', 'cte-odd', 'type-odd', 'type-odd', 'multipart-odd', 'multipart-odd', 'quotes', 'quotes', 'invitation', 'invitation', 'armour',
                      'pgp-key', 'nested-zip', 'header-odd', 'header-odd', 'header-odd', 'original', 'image-text', 'utf8-header', 'deep', 'partial', 'tnef', 'yaml', 'css-file', 'zip-text', 'svg', 'external'])
    name = shape
    first = part(r, 'text/plain', frame(r, 'nothing here'))
    if shape == 'plain':
        form, text = r.choice(list(plain_forms(r, l, d)))
        name += ' ' + form
        head, body = part(r, 'text/plain', frame(r, text))
    elif shape == 'html':
        form, text = r.choice(list(html_forms(r, l, d)) * 2 + list(plain_forms(r, l, d)))
        name += ' ' + form
        if form in ('angle', 'quoted', 'in-brackets'): text = a
        head, body = part(r, 'text/html', page(r, text))
    elif shape == 'flowed':
        cut = r.randrange(1, len(a))
        if r.random() < .5:
            head, body = part(r, 'text/plain', frame(r, f'I am {a[:cut]} {CRLF}{a[cut:]} as you know'), '; format=flowed; delsp=yes')
        else:
            head, body = part(r, 'text/plain', frame(r, f'> I am {l}@{d} {CRLF}> as you know {CRLF}> {a}'), '; format=flowed')
    elif shape == 'calendar': head, body = part(r, 'text/calendar', calendar(r, l, d), '; method=REPLY')
    elif shape == 'header-odd':
        h = f'{l}@{ascii_domain(d)}'
        fields = CRLF.join(r.sample([
            f'Date: Tue, 3 Nov 2026 10:12:00 +0100 ({h})', f'Importance: high ({h})', f'X-Priority: 3 ({h})', f'Sensitivity: {h}', f'Precedence: {h}',
            f'In-Reply-To: Message from {h} of Tue <{l}.1@{ascii_domain(d)}>', f'References: <a@app.example <{h}> {h} <<{h}>>', f'Content-Description: {words_q(r, a)}',
            f'Content-ID: <{h}>', f'Content-Location: https://x.example/{l}%40{ascii_domain(d)}', f'Content-Language: {h}', f'To: {h}:;, "{h}" <billing@app.example> ({h})',
            f'Cc: =?utf-8?q?{l}=40{ascii_domain(d)}?= <billing@app.example>', f'Auto-Submitted: auto-replied ({h})', f'X-Auto-Response-Suppress: {h}',
            f'User-Agent: x ({h})', f'List-Unsubscribe: <mailto:{h}>', f'Message-ID: <{l}=40{ascii_domain(d)}@x>', f'Bcc: {h}', f'{h}: x', f'Content-Class: {h}'], r.randrange(2, 6))) + CRLF
        subject = r.choice([f'=?iso-8859-1?q?von_{l}=40{ascii_domain(d)}?=', f'=?utf-8?b?{base64.b64encode(a.encode()).decode().rstrip("=")}?=', f'=?us-ascii?q?{l}?= @{ascii_domain(d)}',
                            f'=?utf-8?q?{l}?=@=?utf-8?q?{ascii_domain(d)}?=', f'{l}@{CRLF}\t{ascii_domain(d)}', f'Re: =?UTF-8?Q?{h}', f'=?iso-2022-jp?b?{base64.b64encode(h.encode()).decode()}?='])
        head, body = first
    elif shape == 'original':
        # A receipt or report with the message that it is about.
        inner = (f'Return-Path: <{l}@{ascii_domain(d)}>{CRLF}Delivered-To: {l}@{ascii_domain(d)}{CRLF}From: billing@app.example{CRLF}To: "{l}" <{l}@{ascii_domain(d)}>{CRLF}'
                 f'Subject: Hello {words_q(r, a)}{CRLF}MIME-Version: 1.0{CRLF}').encode()
        head2, body2 = part(r, 'text/html', page(r, r.choice(list(html_forms(r, l, d)))[1]))
        inner += head2 + b'\r\n' + body2
        note = f'Reporting-UA: {ascii_domain(d)}; Mailer{CRLF}Final-Recipient: rfc822;{l}@{ascii_domain(d)}{CRLF}Disposition: automatic-action/MDN-sent-automatically; deleted{CRLF}'.encode()
        head, body = multipart(r, [first, (f'Content-Type: message/disposition-notification{CRLF}'.encode(), note), (f'Content-Type: message/rfc822{CRLF}'.encode(), inner)], 'report; report-type=disposition-notification')
    elif shape == 'image-text':
        chunk = b'\x89PNG\r\n\x1a\n' + b'\0\0\0\x0dIHDR' + bytes(17)
        text = zlib.compress(f'Author {a}'.encode())
        chunk += len(text + b'Author\0\0').to_bytes(4, 'big') + b'zTXtAuthor\0\0' + text + bytes(4)
        xmp = b'\xff\xd8\xff\xe1http://ns.adobe.com/xap/1.0/\0<x:xmpmeta><dc:creator>' + a.encode() + b'</dc:creator></x:xmpmeta>'
        pdf = b'%PDF-1.5\n1 0 obj <</Filter/FlateDecode>>\nstream\r\n' + zlib.compress(f'BT (I am {a}) Tj ET'.encode()) + b'\nendstream endobj'
        wide = b'\xd0\xcf\x11\xe0' + bytes(40) + a.encode('utf-16-le') + bytes(20)
        kind, data = r.choice([('image/png', chunk), ('image/jpeg', xmp), ('application/pdf', pdf), ('application/msword', wide), ('application/vnd.ms-outlook', wide)])
        name += ' ' + kind
        head, body = multipart(r, [first, attachment(r, kind, data)])
        refusable = True
    elif shape == 'cte-odd':
        kind, text = r.choice([('text/plain', frame(r, a)), ('text/html', page(r, f'<a href="mailto:{a}">{a}</a>')), ('text/calendar', calendar(r, l, d))])
        encoding, body, refusable = odd_transfer(r, text.encode())
        head = f'Content-Type: {kind}; charset=utf-8{CRLF}'.encode() + (f'Content-Transfer-Encoding: {encoding}{CRLF}'.encode() if encoding else b'')
    elif shape == 'type-odd':
        kind = r.choice(['text/plain', 'text/html', 'text/x-amp-html', 'text/markdown', 'text/enriched', 'text/x-patch', 'text/tab-separated-values',
                         'application/x-www-form-urlencoded', 'application/xhtml+xml', 'application/ld+json', 'application/calendar+json', 'text/x-vcalendar'])
        form, text = r.choice(list(html_forms(r, l, d)) if 'html' in kind else [f for f in plain_forms(r, l, d) if f[0] in ('raw', 'upper', 'mailto', 'percent', 'angle')])
        name += ' ' + kind + ' ' + form
        encoding, body = transfer(r, (page(r, text) if 'html' in kind else frame(r, text)).encode())
        part_head = f'Content-Type: {odd_type(r, kind)}{CRLF}Content-Transfer-Encoding: {encoding}{CRLF}'.encode()
        head, body = multipart(r, [first, (part_head, body)]) if r.random() < .5 else (part_head, body)
    elif shape == 'multipart-odd':
        form, text = r.choice(list(html_forms(r, l, d)))
        head, body = odd_multipart(r, first, part(r, 'text/html', page(r, text)))
    elif shape == 'quotes': head, body = part(r, 'text/plain', frame(r, quotes(r, a) + quotes(r, a)))
    elif shape == 'invitation': head, body = part(r, r.choice(['text/calendar', 'application/ics']), invitation(r, l, d), '; method=REPLY')
    elif shape == 'armour':
        # What is signed or armoured within a text breaks with every change.
        block = r.choice([f'-----BEGIN PGP SIGNED MESSAGE-----{CRLF}Hash: SHA512{CRLF}{CRLF}I am {a}{CRLF}-----BEGIN PGP SIGNATURE-----{CRLF}{CRLF}iQEz{CRLF}-----END PGP SIGNATURE-----',
                          '-----BEGIN PGP PUBLIC KEY BLOCK-----' + CRLF + CRLF + base64.encodebytes(b'\x99\x01' + bytes(range(60)) + f'Anna <{a}>'.encode() + bytes(range(90))).decode().replace('\n', CRLF) + '=aBcD' + CRLF + '-----END PGP PUBLIC KEY BLOCK-----'])
        head, body = part(r, 'text/plain', frame(r, block))
        refusable = True
    elif shape == 'pgp-key':
        key = '-----BEGIN PGP PUBLIC KEY BLOCK-----\r\n\r\n' + base64.encodebytes(b'\x99\x01' + bytes(range(60)) + f'Anna <{a}>'.encode() + bytes(range(90))).decode().replace('\n', CRLF) + '=aBcD\r\n-----END PGP PUBLIC KEY BLOCK-----\r\n'
        head, body = multipart(r, [first, (f'Content-Type: {r.choice(["application/pgp-keys", "text/plain"])}; name=key.asc{CRLF}'.encode(), key.encode())])
        refusable = True
    elif shape == 'nested-zip':
        head, body = multipart(r, [first, attachment(r, r.choice(['application/zip', 'application/octet-stream', 'application/vnd.oasis.opendocument.text']), zipped('inner.zip', zipped('mail.txt', f'I am {a}')))])
        refusable = True
    elif shape == 'vcard': head, body = part(r, r.choice(['text/vcard', 'text/x-vcard', 'text/directory']), vcard(r, l, d))
    elif shape == 'subject':
        subject = r.choice([f'Re: {a}', words_q(r, f'Re: {a}'), 'Re: ' + words_q(r, a), l + words_q(r, '@') + d, f'{l} {words_q(r, "@" + d)}',
                            f'=?utf-16be?b?{base64.b64encode(a.encode("utf-16-be")).decode()}?=', f'=?iso-8859-1?Q?{l}=40{ascii_domain(d)}?=',
                            f'Fwd: {l}%40{d}', f'{l}{CRLF} @{d}', f'=?utf-8*en?q?{l}=40{d}?='])
        head, body = first
    elif shape == 'filename':
        value = r.choice([a, f'Invoice {a}.txt', f'{l}%40{d}.csv', f'{a}.eml'])
        head, body = multipart(r, [first, (f'Content-Type: text/plain{parameter(r, "name", value)}{CRLF}Content-Disposition: attachment'
                               f'{parameter(r, "filename", value)}{CRLF}'.encode('utf-8'), b'just a note\r\n')])
    elif shape in ('nested', 'deep'):
        form, text = r.choice(list(plain_forms(r, l, d)))
        name += ' ' + form
        inner_head, inner = part(r, 'text/plain', frame(r, text))
        inner = (f'Received: from mx.{ascii_domain(d)} by x for <{l}@{ascii_domain(d)}>; Sat, 21 Nov 2026 08:00:00 +0000{CRLF}'
                 f'From: {words_q(r, a)} <{l}@{ascii_domain(d)}>{CRLF}To: billing@app.example{CRLF}Subject: {words_q(r, "To " + a)}{CRLF}'
                 f'X-Original-To: {l}@{ascii_domain(d)}{CRLF}X-Any: {l}%40{ascii_domain(d)}{CRLF}MIME-Version: 1.0{CRLF}').encode() + inner_head + b'\r\n' + inner
        for _ in range(1 if shape == 'nested' else r.randrange(2, 6)):
            encoding, data = r.choice([('7bit', inner), ('8bit', inner), ('base64', base64.encodebytes(inner).replace(b'\n', b'\r\n')),
                                       ('quoted-printable', quoted_printable(r, inner))])
            outer = f'Content-Type: {r.choice(["message/rfc822", "message/global"])}{CRLF}Content-Transfer-Encoding: {encoding}{CRLF}'.encode()
            head, body = multipart(r, [first, (outer, data)])
            inner = b'Subject: Fwd\r\nMIME-Version: 1.0\r\n' + head + b'\r\n' + body
        refusable = shape == 'deep'
    elif shape == 'report':
        status = (f'Reporting-MTA: dns; mx.{ascii_domain(d)}{CRLF}{CRLF}Original-Recipient: rfc822;{l}+40{ascii_domain(d)}{CRLF}'
                  f'Final-Recipient: rfc822; {l}@{ascii_domain(d)}{CRLF}Action: failed{CRLF}Status: 5.1.1{CRLF}'
                  f'Diagnostic-Code: smtp; 550 <{l}@{ascii_domain(d)}> unknown{CRLF}').encode()
        head, body = multipart(r, [first, (b'Content-Type: message/delivery-status\r\n', status),
                               (b'Content-Type: text/rfc822-headers\r\n', f'To: {words_q(r, a)} <{l}@{ascii_domain(d)}>{CRLF}Subject: x{CRLF}'.encode())], 'report')
    elif shape == 'receipt':
        note = (f'Reporting-UA: host.{ascii_domain(d)}; Mailer{CRLF}Original-Recipient: rfc822;{l}@{ascii_domain(d)}{CRLF}'
                f'Final-Recipient: rfc822;{l}@{ascii_domain(d)}{CRLF}Original-Message-ID: <1@app.example>{CRLF}'
                f'Disposition: manual-action/MDN-sent-manually; displayed{CRLF}').encode()
        head, body = multipart(r, [first, (b'Content-Type: message/disposition-notification\r\n', note)], 'report')
    elif shape == 'alternative':
        _, text = r.choice(list(html_forms(r, l, d)))
        head, body = multipart(r, [part(r, 'text/plain', frame(r, f'> {a}')), part(r, 'text/html', page(r, text))], 'alternative')
    elif shape == 'preamble': head, body = multipart(r, [first], preamble=f'For old programs: {l}@{ascii_domain(d)}', epilogue=f'{l}%40{ascii_domain(d)}')
    elif shape == 'boundary': head, body = multipart(r, [first, first], boundary=f'=_{l}@{ascii_domain(d)}_x')
    elif shape == 'content-id':
        head, body = multipart(r, [part(r, 'text/html', page(r, f'<img src="cid:{l}.1@{ascii_domain(d)}">')),
                               (f'Content-Type: text/plain{CRLF}Content-ID: <{l}.1@{ascii_domain(d)}>{CRLF}Content-Location: https://x.{ascii_domain(d)}/a{CRLF}X-User: {l}@{ascii_domain(d)}{CRLF}'.encode(), b'x\r\n')], 'related')
    elif shape == 'ids':
        fields = f'In-Reply-To: <{l}.7@{ascii_domain(d)}>{CRLF}References: <1@app.example> <{l}={ascii_domain(d)}@x.example> <{l}.7@{ascii_domain(d)}>{CRLF}Thread-Topic: {a.encode("ascii","ignore").decode()}{CRLF}'
        head, body = first
    elif shape == 'rtf':
        text = '{\\rtf1\\ansi ' + ' '.join(KEEP) + '\\par ' + r.choice([
            f'{l}@{ascii_domain(d)}', f"{l}\\'40{ascii_domain(d)}", f'{l}\\u64?{ascii_domain(d)}', f'HYPERLINK "mailto:{l}@{ascii_domain(d)}"']) + '}'
        head, body = multipart(r, [first, attachment(r, r.choice(['application/rtf', 'text/rtf']), text.encode('ascii', 'ignore'))])
        refusable = True
    elif shape in ('json', 'yaml', 'csv', 'xml', 'css-file', 'svg'):
        kind, text = {'json': ('application/json', json.dumps({'keep': KEEP, 'mail': a, 'esc': 0}).replace('"esc": 0', f'"esc": "{l}\\u0040{d}"')),
                      'yaml': ('application/yaml', f'mail: {a}{CRLF}'), 'csv': ('text/csv', f'name;mail{CRLF}Anna;"{a}"{CRLF}'),
                      'xml': ('application/xml', f'<a b="{l}&#64;{d}"><![CDATA[{a}]]></a>'), 'svg': ('image/svg+xml', f'<svg><text>{l}&#x40;{d}</text></svg>'),
                      'css-file': ('text/css', f'p:before {{ content: "{l}\\40 {d}" }}')}[shape]
        head, body = multipart(r, [first, attachment(r, kind, text.encode())])
    elif shape in ('zip', 'zip-text'):
        kind = 'application/vnd.openxmlformats-officedocument.wordprocessingml.document' if shape == 'zip' else r.choice(['text/plain', 'application/x-any', 'text/html'])
        head, body = multipart(r, [first, attachment(r, kind, zipped('word/document.xml', f'<w:t>{a}</w:t>'))])
        refusable = True
    elif shape in ('gzip-text', 'gzip', 'json-gzip'):
        kind = {'gzip-text': 'text/plain', 'gzip': 'application/gzip', 'json-gzip': 'application/json'}[shape]
        head, body = multipart(r, [first, attachment(r, kind, gzip.compress(f'Dear {a}, {KEEP}'.encode()))])
        refusable = True
    elif shape in ('uu', 'uu-preamble'):
        data = f'My address is {a}, thank you.'.encode() * 3
        text = 'begin 644 a.txt' + CRLF + ''.join(codecs.encode(data[i:i + 45], 'uu').decode().split('\n')[1] + CRLF for i in range(0, len(data), 45)) + '`' + CRLF + 'end' + CRLF
        head, body = part(r, 'text/plain', frame(r, text)) if shape == 'uu' else multipart(r, [first], preamble=text)
        refusable = True
    elif shape == 'octet': head, body = multipart(r, [first, attachment(r, 'application/octet-stream', f'Dear {a}, hello'.encode(), '; filename=a.txt')])
    elif shape == 'description':
        head, body = multipart(r, [first, (f'Content-Type: text/plain{CRLF}Content-Description: {words_q(r, a)}{CRLF}Content-Language: {l}{CRLF}'.encode(), b'x\r\n')])
    elif shape == 'names':
        fields = f'To: "{a.encode("ascii","ignore").decode()}" <billing@app.example>, {words_q(r, a)} <{l}@{ascii_domain(d)}>, x@other.example{CRLF}Cc: {l}@{ascii_domain(d)}{CRLF}Comments: {words_q(r, a)}{CRLF}Organization: {a.encode("ascii","ignore").decode()}{CRLF}'
        head, body = first
    elif shape == 'mislabelled':
        data = frame(r, a).encode(r.choice(['utf-16-le', 'utf-16-be', 'utf-16']))
        head, body = f'Content-Type: text/plain; charset=utf-8{CRLF}Content-Transfer-Encoding: base64{CRLF}'.encode(), base64.encodebytes(data).replace(b'\n', b'\r\n')
        refusable = True
    elif shape == 'bom':
        data = codecs.BOM_UTF16_LE + frame(r, a).encode('utf-16-le') if r.random() < .5 else codecs.BOM_UTF8 + frame(r, a).encode()
        head, body = f'Content-Type: text/plain{CRLF}Content-Transfer-Encoding: base64{CRLF}'.encode(), base64.encodebytes(data).replace(b'\n', b'\r\n')
    elif shape == 'rfc822-headers':
        head, body = multipart(r, [first, (b'Content-Type: text/rfc822-headers\r\n', f'To: {l}@{ascii_domain(d)}{CRLF}Delivered-To: {l}@{ascii_domain(d)}{CRLF}Subject: {words_q(r, a)}{CRLF}'.encode())])
    elif shape == 'signed':
        inner_head, inner = part(r, 'text/plain', frame(r, a))
        head, body = multipart(r, [(inner_head, inner), (b'Content-Type: application/pgp-signature\r\n', b'-----BEGIN PGP SIGNATURE-----\r\n')], 'signed')
        refusable = True
    elif shape == 'image':
        head, body = multipart(r, [first, attachment(r, 'image/jpeg', b'\xff\xd8\xff\xe1' + bytes(r.randrange(256) for _ in range(200)) + a.encode() + b'\0' * 50)])
        refusable = True
    elif shape == 'utf8-header':
        subject = f'Gr\u00fc\u00dfe von {a}'
        head, body = first
    elif shape == 'partial':
        head, body = f'Content-Type: message/partial; id="{l}@{ascii_domain(d)}"; number=1; total=2{CRLF}'.encode(), f'From: {l}@{ascii_domain(d)}{CRLF}{CRLF}{" ".join(KEEP)} {l}@{ascii_domain(d)}{CRLF}'.encode()
        refusable = True
    elif shape == 'external':
        head, body = multipart(r, [first, (f'Content-Type: message/external-body; access-type=URL; URL="https://x.example.net/?{l}%40{ascii_domain(d)}"{CRLF}'.encode(), f'Content-Type: text/plain{CRLF}Content-ID: <{l}@{ascii_domain(d)}>{CRLF}{CRLF}'.encode())])
    else:
        head, body = multipart(r, [first, attachment(r, 'application/ms-tnef', b'\x78\x9f\x3e\x22' + b'\0\1' * 20 + a.encode() + b'\0' * 9 + a.encode('utf-16-le'))])
        refusable = True
    header = (f'Received: from laptop-{word(r, 6)} ([198.51.100.7]) by mx.{ascii_domain(d)}; Sat, 21 Nov 2026 08:00:00 +0000{CRLF}'
              f'From: Anna <{l}@{ascii_domain(d)}>{CRLF}').encode()
    header += f'Subject: {subject}{CRLF}{fields}MIME-Version: 1.0{CRLF}'.encode() + head
    return name, (l, d), header + b'\r\n' + body, refusable


# Shapes in which nothing has to go but what stands for the user: with somebody else's address in them, the body leaves as it came. Not those in which
# the address may stand in a quotation or in what a program writes: there it goes, whoever has it.
INNOCENT = {'plain', 'html', 'vcard', 'flowed', 'json', 'yaml', 'csv', 'css-file', 'octet', 'zip',
            'gzip', 'uu', 'image', 'tnef', 'cte-odd', 'type-odd', 'nested-zip', 'rtf', 'mislabelled', 'bom', 'filename'}
# Forms in which it does within such a shape: comments, styles, marks.
NEUTRAL = re.compile(r' (css|script|comment|style|quoted|conditional|cdata|head|title|meta)[-\w]*')
# Shapes in which a token of the relay would not be looked for as an inbox is.
TOKENLESS = {'signed', 'image', 'zip', 'tnef', 'partial', 'utf8-header'}


def generate(seed, count, tokens):
    for number in range(count):
        r = random.Random(f'{seed} {number}')
        item = {'keeps': KEEP}
        kind = r.random()
        if kind < .1 or (kind < .2 and tokens):
            token = kind >= .1
            own = inbox(r)
            other = (r.choice(tokens), 'relay.example') if token else inbox(r)
            name, _, message, refusable = build(r, number, other)
            if name.split()[0] not in (INNOCENT if not token else INNOCENT - TOKENLESS) or own[0] in other[0]: continue
            message = message.replace(f'From: Anna <{other[0]}@{ascii_domain(other[1])}>'.encode(), f'From: Anna <{own[0]}@{ascii_domain(own[1])}>'.encode(), 1)
            message = message.split(b'\r\n', 1)[1]
            l, d = own
            if token: item['token'] = other[0]
            else: item['innocent'] = True
            # A token that cannot be replaced where it stands is refused as an inbox is.
            refusable = token
            name += ' token' if token else ' innocent'
        else: name, (l, d), message, refusable = build(r, number)
        item |= {'id': f'{seed}/{number} {name}', 'local': l, 'domain': ascii_domain(d), 'refusable': refusable, 'message': base64.b64encode(message).decode()}
        print(json.dumps(item))


# ---------------------------------------------------------------- reading what came out

def readings(text):
    """The text as different readers see it, one decoder after another."""
    hidden = re.compile('[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]')
    css = lambda t: re.sub(r'\\([0-9A-Fa-f]{1,6})\s?', lambda m: chr(int(m.group(1), 16)) if int(m.group(1), 16) < 0x110000 else '', t)
    decoders = [
        html.unescape, urllib.parse.unquote, lambda t: quopri.decodestring(t.encode('utf-8', 'replace')).decode('utf-8', 'replace'),
        lambda t: re.sub(r'\\u([0-9A-Fa-f]{4})|\\x([0-9A-Fa-f]{2})|\\u\{([0-9a-fA-F]+)\}', lambda m: chr(int(m.group(1) or m.group(2) or m.group(3), 16)), t),
        lambda t: re.sub(r'\\([0-3][0-7]{2})', lambda m: chr(int(m.group(1), 8)), t), css,
        lambda t: re.sub(r"\\'([0-9a-fA-F]{2})", lambda m: chr(int(m.group(1), 16)), t),
        lambda t: re.sub(r'\\u(\d+)\??', lambda m: chr(int(m.group(1))) if int(m.group(1)) < 0x110000 else '', t),
        lambda t: re.sub(r'<!--.*?-->|<[A-Za-z/!][^>]*>', '', t, flags=re.S), lambda t: re.sub(r'\r?\n[ \t]', '', t),
        lambda t: re.sub(r' \r?\n(?:> ?)*', '', t), lambda t: re.sub(r'\+([0-9A-F]{2})', lambda m: chr(int(m.group(1), 16)), t),
        lambda t: re.sub(r'=\?[^?\s]+\?[bBqQ]\?[^?]*\?=(?:\s+=\?[^?\s]+\?[bBqQ]\?[^?]*\?=)*', words, t),
        lambda t: re.sub(r'\([^()]{0,20}\)', '', t), lambda t: t.replace('\\@', '@').replace('"', ''),
    ]
    seen, todo = set(), [(text, 0)]
    while todo:
        t, depth = todo.pop()
        if t in seen: continue
        seen.add(t)
        if depth < 2:
            for decoder in decoders:
                try: u = decoder(t)
                except Exception: continue
                if u != t: todo.append((u, depth + 1))
    for t in seen:
        t = unicodedata.normalize('NFKC', hidden.sub('', t)).replace('\u3002', '.').lower()
        yield t
        yield re.sub(r'\s+(?:> ?)*', '', t)


def words(match):
    out = []
    for m in re.finditer(r'=\?([^?\s*]+)[^?]*\?([bBqQ])\?([^?]*)\?=', match.group(0)):
        raw = base64.b64decode(m.group(3) + '==') if m.group(2) in 'bB' else quopri.decodestring(m.group(3).replace('_', ' ').encode())
        try: out.append(raw.decode(m.group(1), 'replace'))
        except LookupError: out.append(raw.decode('latin-1'))
    return ''.join(out)


def leaves(data, depth=0):
    """Every octet string in a message: raw, headers and parts decoded."""
    yield 'raw', data.decode('latin-1')
    message = email.message_from_bytes(data)
    for p in message.walk():
        for key, value in p.items(): yield key, f'{key}: {value}'
        for key in ('content-type', 'content-disposition'):
            for name, value in (p.get_params(header=key) or []):
                if isinstance(value, tuple): yield key, urllib.parse.unquote(value[2] or '')
                elif value: yield key, value
        if p.is_multipart(): continue
        raw = p.get_payload(decode=True) or b''
        if depth < 6 and p.get_content_maintype() == 'message': yield from leaves(raw, depth + 1)
        label = p.get_content_charset() or 'utf-8'
        for charset in [label, 'latin-1', 'utf-16-le', 'utf-16-be']:
            try: yield p.get_content_type(), raw.decode(charset, 'replace')
            except LookupError: pass
        for start in (b'PK', b'\x1f\x8b'):
            if raw.startswith(start):
                try:
                    if start == b'PK':
                        z = zipfile.ZipFile(io.BytesIO(raw))
                        for n in z.namelist(): yield 'zip', z.read(n).decode('utf-8', 'replace')
                    else: yield 'gzip', gzip.decompress(raw).decode('utf-8', 'replace')
                except Exception: pass


def run_base64(text):
    for m in re.finditer(r'[A-Za-z0-9+/_-]{12,}={0,2}', text):
        s = m.group(0).rstrip('=').replace('-', '+').replace('_', '/')
        for offset in range(4):
            t = s[offset:]
            t = t[:len(t) - 1] if len(t) % 4 == 1 else t
            try: yield base64.b64decode(t + '=' * (-len(t) % 4)).decode('latin-1')
            except Exception: pass


def is_neutral(data):
    """Whether an address of anyone was replaced in it."""
    return any('[address' in reading for _, text in leaves(data) for reading in readings(re.sub(r'\r?\n[ \t]', '', text)))


def findings(data, l, d, bare=True):
    u = d.encode().decode('idna')
    needles = set()
    for domain in {d, u} | ({'gmail.com', 'googlemail.com'} if d == 'gmail.com' else set()):
        needles |= {f'{l}@{domain}', f'{l}={domain}', f'{domain}={l}', f'{l}#{domain}', f'{l}%{domain}', f'{l} at {domain}', f'{l}[at]{domain}', f'{l}(at){domain}', f'{l}(a){domain}'}
    # In text that is quoted, or has many addresses, local parts alone stay.
    if bare and is_distinctive(l): needles.add(l)
    found = set()
    for where, text in leaves(data):
        for t in [text] + (list(run_base64(text)) if len(text) < 20000 else []):
            for reading in readings(t):
                for needle in needles:
                    if needle in reading: found.add((where, needle))
                dotless = re.sub(r'\+[^@\s]*@', '@', reading)
                if d == 'gmail.com' and re.search('(?<![a-z0-9])' + r'\.?'.join(map(re.escape, l.replace('.', ''))) + '@g(oogle)?mail', dotless): found.add((where, 'dots'))
                if re.search('(?<![a-z0-9])' + re.escape(l) + re.escape('@' + d), dotless): found.add((where, 'tag'))
    return found


def check(leakcheck_path, path):
    leakcheck = None
    if leakcheck_path:
        spec = importlib.util.spec_from_file_location('leakcheck', leakcheck_path)
        leakcheck = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(leakcheck)
    for line in open(path):
        item = json.loads(line)
        if 'refused' in item:
            if not item['refusable'] or 'incident' in item['refused']: print(f"REFUSED {item['id']}: {item['refused']}")
            continue
        data = base64.b64decode(item['output'])
        l, d = item['local'], item['domain']
        # What is no part of a picture goes, whatever it says.
        if 'innocent' in item and ' image ' not in item['id'] and not NEUTRAL.search(item['id']) and b'text/calendar' not in base64.b64decode(item['message']) and data.split(b'\r\n\r\n', 1)[1] != base64.b64decode(item['message']).split(b'\r\n\r\n', 1)[1]:
            print(f"CHANGED {item['id']}")
        if 'token' in item:
            # Base32 behind the key id is what makes it one.
            tail = item['token'].rsplit('.', 1)[-1][1:]
            kept = sorted({where for where, text in leaves(data) for t in [text] + list(run_base64(text)) for reading in readings(t) if tail in reading})
            if kept: print(f"TOKEN {item['id']}: {kept}")
        # Folds in every word make more words than one reply may answer.
        bare = not is_neutral(data) and ' invitation' not in item['id']
        hits = findings(data, l, d, bare)
        if hits: print(f"LEAK {item['id']}: {sorted(hits)[:3]}")
        elif leakcheck and bare and leakcheck.check(data, f'{l}@{d}'): print(f"LEAK {item['id']}: leakcheck {leakcheck.check(data, f'{l}@{d}')[:2]}")
        seen = ' '.join(t for _, t in leaves(data))
        flat = re.sub(r'\r?\n[ \t]', '', seen)
        missing = [k for k in item['keeps'] if k not in seen and k not in flat]
        # What this reader could not read of the message as it came says nothing.
        if missing:
            came = ' '.join(t for _, t in leaves(base64.b64decode(item['message'])))
            came += re.sub(r'\r?\n[ \t]', '', came)
            # The answer of a calendar is written anew, without what the user did not say with it.
            missing = [k for k in missing if k in came] if not re.search('METHOD:(REPLY|COUNTER|REFRESH)', came) else []
        if missing: print(f"LOST {item['id']}: {missing}")


if __name__ == '__main__':
    if sys.argv[1] == 'generate': generate(sys.argv[2], int(sys.argv[3]), sys.argv[4:])
    else: check(sys.argv[2], sys.argv[3])
