#!/usr/bin/env python3
"""Seeds a corpus folder for each fuzz target from the project's vectors, and from the public test data where they are.

usage: seed.py CORPUS_FOLDER PROJECT_FOLDER [CONFORMANCE_FOLDER]
"""
import base64, gzip, hashlib, io, json, pathlib, struct, sys, zipfile, zlib

corpus, project = map(pathlib.Path, sys.argv[1:3])
public = pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 and pathlib.Path(sys.argv[3]).is_dir() else None
LARGEST = 65_536


def add(target, octets):
    if isinstance(octets, str):
        octets = octets.encode('utf-8', 'surrogateescape')
    folder = corpus / target
    folder.mkdir(parents=True, exist_ok=True)
    if 0 < len(octets) <= LARGEST:
        (folder / hashlib.sha256(octets).hexdigest()[:16]).write_bytes(octets)


def crlf(octets):
    return octets.replace(b'\r\n', b'\n').replace(b'\n', b'\r\n')


def files(folder):
    return [path for path in sorted(folder.rglob('*')) if path.is_file()]


def message(octets, targets):
    octets = crlf(octets)
    for target in targets:
        add(target, octets)
    header = octets.split(b'\r\n\r\n', 1)[0]
    for line in header.replace(b'\r\n ', b' ').replace(b'\r\n\t', b' ').split(b'\r\n'):
        name, _, value = line.partition(b':')
        if name.lower() in (b'from', b'to', b'cc', b'reply-to', b'sender'):
            add('addresses', value.strip())
        if name.lower() == b'dkim-signature':
            add('dkim', value.strip())


vectors = project / 'Tests/RelayCoreTests/Vectors'
for path in files(vectors):
    if path.suffix == '.incoming':
        octets = path.read_bytes().split(b'---\n', 1)[-1]
        kind = {'reply': ['reply'], 'bounce': ['report']}.get(path.parent.name, [])
        message(octets, ['header', 'mime'] + kind)
        if 'reply' in kind:
            lines = crlf(octets).split(b'\r\n')
            add('reply', b'\r\n'.join(line for line in lines if not line.lower().startswith(b'from:')).replace(b'{{inbox}}', b'anna@inbox.example'))
for path in files(vectors / 'dmarc'):
    message(path.read_bytes(), ['header', 'mime', 'report'])
    octets = path.read_bytes().split(b'base64\r\n\r\n', 1)[-1].split(b'\r\n--', 1)[0]
    packed = base64.b64decode(octets)
    add('archive', packed)
    if packed[:1] == b'<': add('aggregate', packed)
for path in files(project / 'Tests/InternetMessageTests/Vectors'):
    for line in path.read_bytes().splitlines():
        add('addresses', line.split(b'\t')[0])
for path in files(project / 'Tests/SignInTests/Vectors'):
    for line in path.read_text().splitlines() if path.suffix == '.jsonl' else []:
        case = json.loads(line)
        add('jws', case['token'])
        add('json', json.dumps({name: value for name, value in case.items() if name != 'jwks'}))
for path in files(project / 'policy'):
    if path.suffix in ('.yaml', '.yml'):
        add('policy', path.read_bytes())
        for line in path.read_text(errors='replace').splitlines():
            if any(mark in line for mark in ('==', '&&', '||', ' in ', '<', '>')):
                add('cel', line.split(':', 1)[-1].strip().strip('"\''))

# Archives and dialogues have no vectors of their own: small ones of each kind.
text = b'Dear team, please write to anna@inbox.example.\n' * 8
packed = io.BytesIO()
with zipfile.ZipFile(packed, 'w', zipfile.ZIP_DEFLATED) as archive:
    archive.writestr('word/document.xml', text)
    archive.writestr('nested.gz', gzip.compress(text))
add('archive', packed.getvalue())
add('archive', gzip.compress(gzip.compress(text)))
add('archive', b'%PDF-1.4\n1 0 obj\n<< /Filter /FlateDecode >>\nstream\n' + zlib.compress(text) + b'\nendstream\nendobj\n')
chunk = b'tEXt' + b'Comment\0' + text
add('archive', b'\x89PNG\r\n\x1a\n' + struct.pack('>I', len(chunk) - 4) + chunk + struct.pack('>I', zlib.crc32(chunk)))
add('dns', bytes.fromhex('000081800001000100000000046e616d65076578616d706c650000010001c00c00010001000000000004c0000201'))
add('dns', bytes.fromhex('000081800001000200000000046e616d65076578616d706c650000100001c00c0005000100000e10000401 61c00cc02e00100001 00000e100009087673 7066312d616c6c'.replace(' ', '')))
add('milter', b'hclient.example\nmbilling@app.example\nrannarelay2@relay.example\nfFrom:billing@app.example\nfSubject:Hello\nbHello\n.\n')
add('milter', b'hclient.example\nmbilling@app.example\nrannarelay2@relay.example\nrbobrelay22@relay.example\nrx@other.example\nfFrom:billing@app.example\nb\n.\nx\nm\nrpostmaster@relay.example\nfFrom:a@b\n.\n')
add('spf', b'v=spf1 a:%{d1r}.example include:_spf.example ip4:192.0.2.0/24 ip6:2001:db8::/32 mx//64 redirect=x.example exp=%{l}.example -all')
add('dkim', b'v=DKIM1; k=ed25519; t=s:y; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=')
add('dkim', b'v=DMARC1; p=reject; sp=quarantine; adkim=s; aspf=r; rua=mailto:a@example.org!10m')
app = b'client_id=com.example.app&redirect_uri=https%3A%2F%2Fapp.example%2Fsigned-in%3Fa%3D1&scope=openid+email&state=a%22%3Cb%27%26'
proof = b'&nonce=n&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256'
add('authorize', app + proof + b'&response_type=code&prompt=login+consent&max_age=60&ui_locales=de+en&acr_values=phr&login_hint=anna')
add('authorize', app + proof + b'&response_type=id_token+code&response_mode=form_post&prompt=none&id_token_hint=a.b.c&claims={}')
add('authorize', app + proof + b'&response_type=code&response_mode=web_message&display=popup&unknown')
add('authorize', app + proof + b'&response_type=code&response_mode=fragment&request=x')
add('authorize', b'client_id=a&post_logout_redirect_uri=https%3A%2F%2Fapp.example%2Fsigned-in%3Fa%3D1&state=%0D%0Aa')
for item in ('a301020326 2041ff'.replace(' ', ''), '9f01820203ff', 'bf61610161629f0203ffff', 'd818456449455446', 'f97e00', '3903e7'):
    add('cbor', bytes.fromhex(item))

add('attest', json.dumps({'id': 1, 'app_id': 'TEAM.app', 'environment': 'development', 'client_data': '00', 'attestation': 'a0',
                          'key_id': '00' * 32, 'now': '2026-01-01T00:00:00Z', 'roots': []}))

if public:
    for name in ('appendix_a.json', 'fail.json'):
        for case in json.loads((public / 'cbor' / name).read_text()):
            add('cbor', bytes.fromhex(case['hex']))
    for vector in json.loads((public / 'webauthn/w3c-level3/test-vectors.json').read_text())['vectors']:
        add('webauthn', bytes.fromhex(vector['registration']['attestationObject']))
        add('cbor', bytes.fromhex(vector['registration']['attestationObject']))
        add('webauthn', bytes.fromhex(vector['authentication']['authenticatorData']))
        add('webauthn', bytes.fromhex(vector['expected']['credentialPublicKeyCOSE']))
    samples = json.loads((public / 'app-attest/samples.json').read_text())
    for sample in samples['attestations']:
        add('attest', base64.b64decode(sample['attestationObjectBase64']))
    for sample in samples['assertions']:
        add('attest', base64.b64decode(sample['assertionBase64']))
        add('attest', json.dumps({'id': 1, 'app_id': sample['appId'], 'client_data': '00', 'assertion': sample['assertionBase64'],
                                  'public_key': sample['publicKeyX963'], 'counter': 0}))
    for folder in ('mail', 'replies', 'calendar'):
        for path in files(public / folder):
            message(path.read_bytes(), ['header', 'mime'] + (['reply'] if folder != 'mail' else []))
    for path in files(public / 'bounces'):
        message(path.read_bytes(), ['report'])
    for path in files(public / 'dkim/messages'):
        message(path.read_bytes(), ['header'])
    for case in json.loads((public / 'dkim/cases.json').read_text()):
        for record in (case.get('dns') or {}).values():
            add('dkim', record if isinstance(record, str) else json.dumps(record))
    for zone in json.loads((public / 'spf/spf-cases.json').read_text())['zones'].values():
        for records in zone.values():
            for record in records:
                if isinstance(record, dict) and record['type'] in ('SPF', 'TXT'):
                    value = record['value']
                    add('spf', ''.join(value) if isinstance(value, list) else value)
    for case in json.loads((public / 'cel_cases.json').read_text()):
        add('cel', case['expr'])
    for path in files(public / 'jwt'):
        if path.suffix == '.json':
            add('json', path.read_bytes())

for folder in sorted(corpus.iterdir()):
    print(f'{folder.name:10} {len(list(folder.iterdir()))} seeds')
