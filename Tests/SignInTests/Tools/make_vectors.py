#!/usr/bin/env python3
"""Writes Vectors/*.jsonl: tokens that must be taken or refused, each a question of `postern verify token --batch` with, beside it,
why it is there and what must come out. Signed with Python's `cryptography`, so that nothing of Postern vouches for itself.

    .build/test-tools/bin/python3 Tests/SignInTests/Tools/make_vectors.py

The keys in Vectors/test-keys.json are for these files alone. ECDSA signatures differ from run to run; nothing else does.
"""
import base64, hashlib, hmac, json, os
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa, utils

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "Vectors")
NOW, ISS, AUD, NONCE = 1790000000, "https://issuer.example", "com.example.juice", "n-0S6_WzA2Mj"
P = 2**256 - 2**224 + 2**192 + 2**96 - 1
N = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def number(value, length=None):
    return b64(value.to_bytes(length or (value.bit_length() + 7) // 8, "big"))


def load_keys():
    path = os.path.join(HERE, "test-keys.json")
    makers = {
        "ec": lambda: ec.generate_private_key(ec.SECP256R1()),
        "ec-other": lambda: ec.generate_private_key(ec.SECP256R1()),
        "p384": lambda: ec.generate_private_key(ec.SECP384R1()),
        "p521": lambda: ec.generate_private_key(ec.SECP521R1()),
        "secp256k1": lambda: ec.generate_private_key(ec.SECP256K1()),
        "rsa": lambda: rsa.generate_private_key(65537, 2048),
        "rsa-other": lambda: rsa.generate_private_key(65537, 2048),
        "rsa-1024": lambda: rsa.generate_private_key(65537, 1024),
        "rsa-2047": lambda: rsa.generate_private_key(65537, 2047),
        "rsa-e3": lambda: rsa.generate_private_key(3, 2048),
        "ed25519": ed25519.Ed25519PrivateKey.generate,
    }
    pems = json.load(open(path)) if os.path.exists(path) else {}
    for name, make in makers.items():
        if name not in pems:
            pems[name] = make().private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()).decode()
    json.dump(pems, open(path, "w"), indent=1)
    return {name: serialization.load_pem_private_key(pem.encode(), None) for name, pem in pems.items()}


KEYS = load_keys()


def jwk(name, kid=None, **more):
    key = KEYS[name].public_key()
    if isinstance(key, rsa.RSAPublicKey):
        n = key.public_numbers()
        result = {"kty": "RSA", "kid": kid or "rsa-1", "use": "sig", "alg": "RS256", "n": number(n.n), "e": number(n.e)}
    elif isinstance(key, ed25519.Ed25519PublicKey):
        raw = key.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
        result = {"kty": "OKP", "kid": kid or "ed-1", "use": "sig", "alg": "EdDSA", "crv": "Ed25519", "x": b64(raw)}
    else:
        n = key.public_numbers()
        crv, alg, size = {"secp256r1": ("P-256", "ES256", 32), "secp384r1": ("P-384", "ES384", 48), "secp521r1": ("P-521", "ES512", 66),
                          "secp256k1": ("secp256k1", "ES256K", 32)}[key.curve.name]
        result = {"kty": "EC", "kid": kid or "ec-1", "use": "sig", "alg": alg, "crv": crv, "x": number(n.x, size), "y": number(n.y, size)}
    result.update(more)
    return {k: v for k, v in result.items() if v is not None}


JWKS = {"keys": [jwk("ec"), jwk("rsa")]}


def raw_sign(alg, key, data):
    k = KEYS[key] if isinstance(key, str) else key
    if alg in ("ES256", "ES384", "ES512", "ES256K"):
        h = {"ES256": hashes.SHA256, "ES256K": hashes.SHA256, "ES384": hashes.SHA384, "ES512": hashes.SHA512}[alg]()
        size = (k.curve.key_size + 7) // 8
        r, s = utils.decode_dss_signature(k.sign(data, ec.ECDSA(h)))
        return r.to_bytes(size, "big") + s.to_bytes(size, "big")
    if alg in ("RS256", "RS384", "RS512", "RS1"):
        h = {"RS256": hashes.SHA256, "RS384": hashes.SHA384, "RS512": hashes.SHA512, "RS1": hashes.SHA1}[alg]()
        return k.sign(data, padding.PKCS1v15(), h)
    if alg.startswith("PS"):
        h = {"PS256": hashes.SHA256, "PS384": hashes.SHA384, "PS512": hashes.SHA512}[alg]()
        return k.sign(data, padding.PSS(padding.MGF1(h), h.digest_size), h)
    if alg == "EdDSA":
        return k.sign(data)
    if alg == "none":
        return b""
    raise ValueError(alg)


def part(value):
    if isinstance(value, bytes):
        return b64(value)
    return b64(json.dumps(value, separators=(",", ":")).encode())


def claims(**more):
    result = {"iss": ISS, "aud": AUD, "exp": NOW + 600, "iat": NOW - 10, "sub": "001999.0a1b2c.1200", "nonce": NONCE,
              "nonce_supported": True, "email": "x7k2m9q4wd@relay.example", "email_verified": "true", "is_private_email": "true",
              "real_user_status": 2, "auth_time": NOW - 20}
    result.update(more)
    return {k: v for k, v in result.items() if v is not ...}


def token(header=None, payload=None, key="ec", alg=None, signature=None, header_text=None, payload_text=None, **header_more):
    if header is None:
        header = {"alg": "RS256" if key.startswith("rsa") else "ES256", "kid": "rsa-1" if key.startswith("rsa") else "ec-1"}
    if isinstance(header, dict):
        header = {**header, **header_more}
        alg = alg or header.get("alg")
    head = header_text if header_text is not None else part(header)
    body = payload_text if payload_text is not None else part(claims() if payload is None else payload)
    data = (head + "." + body).encode()
    sig = raw_sign(alg or "ES256", key, data) if signature is None else signature(data) if callable(signature) else signature
    return head + "." + body + "." + (sig if isinstance(sig, str) else b64(sig))


def hs(secret, digest=hashlib.sha256):
    return lambda data: hmac.new(secret, data, digest).digest()


FILES = {}


def case(file, name, why, tok, check=None, **question):
    entry = {"id": f"{file}/{name}", "why": why, "token": tok, "jwks": JWKS, "iss": ISS, "aud": AUD, "nonce": NONCE, "now": NOW,
             "claims": "check"}
    entry.update(question)
    entry["expect"] = {"valid": check is None, **({"check": check} if check else {})}
    ids = [e["id"] for e in FILES.setdefault(file, [])]
    assert entry["id"] not in ids, entry["id"]
    FILES[file].append(entry)


def jwks(*keys):
    return {"keys": list(keys)}


# ---------------------------------------------------------------- valid
v = lambda *a, **k: case("valid", *a, **k)
v("es256", "the ordinary case", token())
v("rs256", "the ordinary case", token(key="rsa"))
v("typ", "typ JWT in any case says what it is", token({"typ": "jwt", "alg": "ES256", "kid": "ec-1"}))
v("unknown-header", "an unknown header parameter is ignored (RFC 7515 section 4)", token({"alg": "ES256", "kid": "ec-1", "x-app": [1]}))
v("x5t", "a certificate's thumbprint brings no key", token({"alg": "ES256", "kid": "ec-1", "x5t": "AAAAAAAAAAAAAAAAAAAAAAAAAAA"}))
v("white-space-in-json", "white space inside the JSON is JSON's own", token(header=b'{ "kid" : "ec-1",\n\t"alg" :\r "ES256" }', alg="ES256"))
v("escaped-names", "an escaped member name is the same name", token(header=b'{"\\u0061lg":"ES256","k\\u0069d":"ec-1"}', alg="ES256"))
v("aud-list-of-one", "a list of one is the one (RFC 7519 section 4.1.3)", token(payload=claims(aud=[AUD])))
v("booleans", "Apple's truth values as booleans", token(payload=claims(email_verified=True, is_private_email=False)))
v("fraction", "times may have fractions (RFC 7519 section 2)", token(payload=claims(exp=NOW + 0.5, iat=NOW - 0.25)))
v("exponent", "times may be written with an exponent", token(payload=json.dumps(claims(exp=...))[:-1].encode() + b', "exp": 1.7900006e9}'))
v("exp-within-leeway", "expired 59 s ago, and clocks differ by up to 60 s", token(payload=claims(exp=NOW - 59, iat=NOW - 600)))
v("iat-within-leeway", "60 s ahead", token(payload=claims(iat=NOW + 60)))
v("nbf-within-leeway", "60 s ahead", token(payload=claims(nbf=NOW + 60)))
v("no-nonce-anywhere", "neither side has one", token(payload=claims(nonce=...)), nonce=None)
v("nonce-unsupported", "expected, and the token says that its platform has none", token(payload=claims(nonce=..., nonce_supported=False)))
v("nonce-hashed", "the claim is the SHA-256 of what the app sent", token(payload=claims(nonce=hashlib.sha256(NONCE.encode()).hexdigest())), nonce_form="sha256_hex")
v("status-out-of-range", "counts as absent", token(payload=claims(real_user_status=3)))
v("status-text", "counts as absent", token(payload=claims(real_user_status="2")))
v("jwk-without-alg-es", "the algorithm is the configured one that fits the key", token(), jwks=jwks(jwk("ec", alg=None)))
v("jwk-without-alg-rs", "the algorithm is the configured one that fits the key", token(key="rsa"), jwks=jwks(jwk("rsa", alg=None)))
v("jwk-without-use", "use is optional", token(), jwks=jwks(jwk("ec", use=None)))
v("jwk-key-ops", "key_ops may say verify", token(), jwks=jwks(jwk("ec", use=None, key_ops=["verify"])))
v("same-kid-other-type", "one id for an EC and an RSA key: the algorithm decides", token({"alg": "RS256", "kid": "k"}, key="rsa"), jwks=jwks(jwk("ec", "k"), jwk("rsa", "k")))
v("same-key-twice", "the same key twice is one key", token(), jwks=jwks(jwk("ec"), jwk("ec")))
v("odd-kid", "a kid is a text and no path: it matches octet by octet", token({"alg": "ES256", "kid": "../../dev/null"}), jwks=jwks(jwk("ec", "../../dev/null")))
v("others-unusable", "keys of unknown kinds beside the right one are left aside (RFC 7517 section 5)", token(), jwks=jwks(jwk("ed25519"), jwk("p384", "p"), {"kty": "oct", "kid": "o", "k": "AAAA"}, {"kty": "new"}, jwk("rsa-1024", "weak"), jwk("ec")))
v("rsa-exponent-3", "a small exponent is weak only with a wrong padding check", token({"alg": "RS256", "kid": "e3"}, key="rsa-e3"), jwks=jwks(jwk("rsa-e3", "e3")))
v("high-s", "(r, n - s) is a valid ECDSA signature too", token(signature=lambda d: (lambda s: s[:32] + (N - int.from_bytes(s[32:], "big")).to_bytes(32, "big"))(raw_sign("ES256", "ec", d))))
v("skip-plain-text", "with claims skip the payload may be anything", token(payload=b"Zm9v, plain"), claims="skip", iss=None, aud=None, nonce=None)
v("skip-expired", "with claims skip no claim is looked at", token(payload=claims(exp=1)), claims="skip")
v("large-unknown-number", "a number in an unknown claim may be beyond every integer", token(payload=json.dumps(claims())[:-1].encode() + b', "big": 123456789012345678901234567890, "e": 1e400}'))
v("unicode", "UTF-8 and escapes in claims", token(payload=json.dumps(claims()).encode()[:-1] + ', "name": "J\u00f6rg \\ud83d\\ude00 \U0001F600"}'.encode()))

# ---------------------------------------------------------------- format
f = lambda *a, **k: case("format", *a, **k)
good = token()
head, body, sig = good.split(".")
for name, text in {
    "empty": "", "dots": "..", "one-segment": head, "two-segments": f"{head}.{body}", "four-segments": good + ".", "extra-segment": good + "." + sig,
    "jwe-five-segments": f"{head}.{body}.{sig}.{sig}.{sig}", "no-header": f".{body}.{sig}", "detached": f"{head}..{sig}", "leading-space": " " + good,
    "trailing-newline": good + "\n", "trailing-space": good + " ", "inner-space": f"{head}. {body}.{sig}", "inner-newline": f"{head}.{body}\n.{sig}",
    "tab-in-signature": f"{head}.{body}.{sig[:10]}\t{sig[10:]}", "padded-header": f"{head}=.{body}.{sig}", "padded-payload": f"{head}.{body}==.{sig}",
    "padded-signature": f"{good}==", "percent-padding": f"{good}%3D", "bearer": "Bearer " + good, "quoted": f'"{good}"', "nul": good + "\0", "nul-inside": f"{head}.\0{body}.{sig}",
    "json-serialization": json.dumps({"protected": head, "payload": body, "signature": sig}), "fullwidth-dot": good.replace(".", "\uff0e"),
    "non-ascii": good[:-1] + "\u00e9", "too-long": f"{head}.{part(claims(pad='a' * 20000))}.{sig}", "comma": good.replace(".", ","),
    "bom": "\ufeff" + good, "colon": good + ":", "illegal-length": f"{head}.{body}.{sig}A" if len(sig) % 4 == 0 else f"{head}A.{body}.{sig}" if len(head) % 4 == 0 else f"{head}.{body}.{sig[:-1]}",
}.items():
    f(name, "the text is not exactly three segments of base64url without padding", text, "format")
alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def loosen(segment):
    """The same octets, written with bits set that carry nothing."""
    assert len(segment) % 4 != 0, len(segment)
    return segment[:-1] + alphabet[alphabet.index(segment[-1]) + 1]


uneven = token({"alg": "ES256", "kid": "ec-1", "x": "12"}, claims(pad="1"))
for pad in range(3):
    uneven = token({"alg": "ES256", "kid": "ec-1", "x": "1" * pad}, claims(pad="1"))
    if len(uneven.split(".")[0]) % 4: break
h2, _, _ = uneven.split(".")
for pad in range(3):
    p2 = part(claims(pad="1" * pad))
    if len(p2) % 4: break
f("loose-bits-signature", "bits that carry nothing: another text for the same signature", f"{head}.{body}.{loosen(sig)}", "format")
f("loose-bits-header", "signed as it stands, and still not canonical", token(header_text=loosen(h2), alg="ES256"), "format")
f("loose-bits-payload", "signed as it stands, and still not canonical", token(payload_text=loosen(p2)), "format")
f("standard-alphabet", "+ and / are of another alphabet", token(payload_text=base64.b64encode(b"\xfb\xff\xfe" + json.dumps(claims()).encode()).decode().rstrip("=")), "format")
f("padded-and-signed", "signed with its padding", token(payload_text=base64.urlsafe_b64encode((json.dumps(claims()) + " " * ((1 - len(json.dumps(claims()))) % 3)).encode()).decode()), "format")
for name, raw in {
    "not-json": b"ec-1", "array": b'["ES256"]', "string": b'"ES256"', "null": b"null", "number": b"1", "empty": b"", "unterminated": b'{"alg":"ES256","kid":"ec-1"',
    "trailing-data": b'{"alg":"ES256","kid":"ec-1"}{}', "trailing-comma": b'{"alg":"ES256","kid":"ec-1",}', "single-quotes": b"{'alg':'ES256','kid':'ec-1'}",
    "comment": b'{"alg":"ES256","kid":"ec-1"/**/}', "bom": b'\xef\xbb\xbf{"alg":"ES256","kid":"ec-1"}', "duplicate-alg": b'{"alg":"none","alg":"ES256","kid":"ec-1"}',
    "duplicate-alg-last-wins": b'{"alg":"ES256","alg":"none","kid":"ec-1"}', "duplicate-kid": b'{"alg":"ES256","kid":"x","kid":"ec-1"}',
    "duplicate-escaped": b'{"alg":"ES256","kid":"ec-1","\\u0061lg":"none"}', "invalid-utf8": b'{"alg":"ES256","kid":"ec-1","x":"\xff"}', "overlong-utf8": b'{"alg":"ES256","kid":"ec-1","x":"\xc0\xaf"}',
    "surrogate-utf8": b'{"alg":"ES256","kid":"ec-1","x":"\xed\xa0\x80"}', "lone-surrogate": b'{"alg":"ES256","kid":"ec-1","x":"\\ud800"}', "low-surrogate-first": b'{"alg":"ES256","kid":"ec-1","x":"\\udc00\\ud800"}',
    "nul-escape": b'{"alg":"ES256","kid":"ec-1\\u0000"}', "raw-control": b'{"alg":"ES256","kid":"ec-1","x":"a\nb"}', "deep": b'{"alg":"ES256","kid":"ec-1","x":' + b"[" * 2000 + b"]" * 2000 + b"}",
    "nan": b'{"alg":"ES256","kid":"ec-1","x":NaN}', "leading-zero": b'{"alg":"ES256","kid":"ec-1","x":01}', "plus": b'{"alg":"ES256","kid":"ec-1","x":+1}', "bare-point": b'{"alg":"ES256","kid":"ec-1","x":1.}',
    "long-number": b'{"alg":"ES256","kid":"ec-1","x":' + b"9" * 500 + b"}", "utf16": '{"alg":"ES256","kid":"ec-1"}'.encode("utf-16-le"),
}.items():
    f("header-" + name, "signed, but the header is no strict JSON object", token(header=raw, alg="ES256"), "format")
for name, value in {"crit": ["exp"], "crit-empty": [], "b64": False, "jku": "https://evil.example/keys", "x5u": "https://evil.example/cert", "x5c": ["MIIB"], "zip": "DEF", "enc": "A256GCM", "jwk": jwk("ec-other"), "epk": {}, "tag": "AA", "p2c": 1}.items():
    f("header-parameter-" + name, "a parameter that brings keys, or changes what is signed", token(**{name.split("-")[0]: value}), "format")
f("embedded-jwk", "signed with the key that it brings along, under a known kid", token({"alg": "ES256", "kid": "ec-1", "jwk": jwk("ec-other")}, key="ec-other"), "format")
f("embedded-jwk-null", "even an empty one", token(jwk=None), "format")
f("b64-false", "an unencoded payload (RFC 7797)", token({"alg": "ES256", "kid": "ec-1", "b64": False, "crit": ["b64"]}), "format")
f("cty-number", "cty is a text", token(cty=1), "format")

# ---------------------------------------------------------------- type
t = lambda *a, **k: case("type", *a, **k)
for typ in ["at+jwt", "logout+jwt", "secevent+jwt", "dpop+jwt", "JOSE", "jwt ", "JWE"]:
    t("typ-" + typ.strip().replace("+", "-").lower() + ("-space" if typ != typ.strip() else ""), "another kind of token of the same issuer (RFC 8725 section 3.11)", token(typ=typ), "typ")
t("typ-number", "typ is a text", token(typ=1), "typ")
t("typ-empty", "typ is a text of at least one octet", token(typ=""), "typ")
t("nested", "cty JWT wraps another token", token(cty="JWT"), "typ")

# ---------------------------------------------------------------- algorithm
a = lambda *x, **k: case("algorithm", *x, **k)
pem = KEYS["rsa"].public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
der = KEYS["rsa"].public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
for alg in ["none", "None", "NONE", "nOnE", "none ", "", "null"]:
    a("none-" + (alg.strip() or "empty") + ("-space" if alg != alg.strip() else ""), "unsigned", token({"alg": alg, "kid": "ec-1"}, signature=b""), "alg")
a("none-signed", "none beside a valid signature", token({"alg": "none", "kid": "ec-1"}, alg="ES256"), "alg")
a("none-without-kid", "unsigned", token({"alg": "none"}, signature=b""), "alg")
for name, secret in {"pem": pem, "pem-stripped": pem.strip(), "der": der, "modulus": KEYS["rsa"].public_key().public_numbers().n.to_bytes(256, "big"), "jwk": json.dumps(jwk("rsa")).encode(), "empty": b""}.items():
    a("hs256-with-rsa-" + name, "HMAC with the public key as the secret", token({"alg": "HS256", "kid": "rsa-1"}, key="rsa", signature=hs(secret)), "alg")
a("hs256-with-ec", "HMAC with the public key as the secret", token({"alg": "HS256", "kid": "ec-1"}, signature=hs(b"".join([b"\x04", KEYS["ec"].public_key().public_numbers().x.to_bytes(32, "big")]))), "alg")
a("hs256-real", "a symmetric key in the set is no key for tokens", token({"alg": "HS256", "kid": "o"}, signature=hs(b"k" * 32)), "alg", jwks=jwks({"kty": "oct", "kid": "o", "alg": "HS256", "k": b64(b"k" * 32)}))
for alg in ["RS384", "RS512", "PS256", "PS384", "PS512"]:
    a(alg.lower(), "a valid signature of an algorithm that is not configured", token({"alg": alg, "kid": "rsa-1"}, key="rsa"), "alg")
a("ps256-by-key", "not even where the key says so", token({"alg": "PS256", "kid": "rsa-1"}, key="rsa"), "alg", jwks=jwks(jwk("rsa", alg="PS256")))
a("es384", "another curve", token({"alg": "ES384", "kid": "p"}, key="p384"), "alg", jwks=jwks(jwk("p384", "p")))
a("es512", "another curve", token({"alg": "ES512", "kid": "p"}, key="p521"), "alg", jwks=jwks(jwk("p521", "p")))
a("es256k", "another curve", token({"alg": "ES256K", "kid": "p"}, key="secp256k1"), "alg", jwks=jwks(jwk("secp256k1", "p")))
a("eddsa", "another algorithm", token({"alg": "EdDSA", "kid": "ed-1"}, key="ed25519"), "alg", jwks=jwks(jwk("ed25519")))
a("lower-case", "names of algorithms are compared exactly", token({"alg": "es256", "kid": "ec-1"}, alg="ES256"), "alg")
a("trailing-space", "names of algorithms are compared exactly", token({"alg": "ES256 ", "kid": "ec-1"}, alg="ES256"), "alg")
a("missing", "no algorithm", token({"kid": "ec-1"}, alg="ES256"), "alg")
a("number", "no text", token({"alg": 256, "kid": "ec-1"}, alg="ES256"), "alg")
a("list", "no text", token({"alg": ["ES256"], "kid": "ec-1"}, alg="ES256"), "alg")
a("null", "no text", token({"alg": None, "kid": "ec-1"}, alg="ES256"), "alg")
a("ecdh", "an algorithm of encryption", token({"alg": "RSA-OAEP", "kid": "rsa-1"}, key="rsa", alg="RS256"), "alg")
a("not-configured-rs", "RS256 where only ES256 is configured", token(key="rsa"), "alg", algorithms=["ES256"])
a("not-configured-es", "ES256 where only RS256 is configured", token(), "alg", algorithms=["RS256"])

# ---------------------------------------------------------------- key
k = lambda *x, **q: case("key", *x, **q)
k("missing-kid", "no key is a default", token({"alg": "ES256"}), "kid")
k("missing-kid-single-key", "with one key there is no choice (OpenID Connect Core section 10.1)", token({"alg": "ES256"}), jwks=jwks(jwk("ec")))
k("unknown", "an unknown kid must not lead to the first key", token({"alg": "ES256", "kid": "ec-2"}), "kid")
for name, kid in {"path": "../../../../dev/null", "file": "/etc/passwd", "url": "https://evil.example/key", "sql": "x' UNION SELECT 'k", "case": "EC-1", "prefix": "ec", "space": "ec-1 ", "percent": "ec%2D1", "star": "*", "combining": "ec-1\u0301"}.items():
    k("kid-" + name, "a kid is compared, never interpreted", token({"alg": "ES256", "kid": kid}), "kid")
k("kid-equivalent", "texts that Unicode calls equivalent are different ids", token({"alg": "ES256", "kid": "\u00e9"}), "kid", jwks=jwks(jwk("ec", "e\u0301")))
for name, kid in {"number": 1, "null": None, "list": ["ec-1"], "object": {}, "empty": "", "long": "k" * 300, "true": True}.items():
    k("kid-" + name, "a kid is a text of 1 to 256 octets", token({"alg": "ES256", "kid": kid}), "kid")
k("wrong-type-rs-with-ec", "RS256 under the id of an EC key", token({"alg": "RS256", "kid": "ec-1"}, key="rsa"), "kid")
k("wrong-type-es-with-rsa", "ES256 under the id of an RSA key", token({"alg": "ES256", "kid": "rsa-1"}), "kid")
k("jwk-without-kid", "a key without id is nobody's", token(), "kid", jwks=jwks({x: y for x, y in jwk("ec").items() if x != "kid"}))
k("jwk-other-alg", "the key says another algorithm", token(key="rsa"), "kid", jwks=jwks(jwk("rsa", alg="RS512")))
k("jwk-alg-es384-on-p256", "the key contradicts itself", token(), "kid", jwks=jwks(jwk("ec", alg="ES384")))
k("jwk-alg-number", "the key's algorithm is no text", token(), "kid", jwks=jwks(jwk("ec", alg=5)))
k("jwk-use-enc", "a key for encryption", token(), "kid", jwks=jwks(jwk("ec", use="enc")))
k("jwk-key-ops-sign", "a key that may not verify", token(), "kid", jwks=jwks(jwk("ec", use=None, key_ops=["sign"])))
k("jwk-key-ops-encrypt", "use and key_ops contradict each other", token(), "kid", jwks=jwks(jwk("ec", key_ops=["encrypt"])))
k("jwk-key-ops-text", "key_ops is a list", token(), "kid", jwks=jwks(jwk("ec", key_ops="verify")))
k("jwk-key-ops-twice", "key_ops without repetitions (RFC 7517 section 4.3)", token(), "kid", jwks=jwks(jwk("ec", key_ops=["verify", "verify"])))
k("rsa-1024", "too weak", token({"alg": "RS256", "kid": "w"}, key="rsa-1024"), "kid", jwks=jwks(jwk("rsa-1024", "w")))
k("rsa-2047", "too weak by a bit", token({"alg": "RS256", "kid": "w"}, key="rsa-2047"), "kid", jwks=jwks(jwk("rsa-2047", "w")))
k("rsa-e1", "an exponent of 1: every padded text is its own signature", token({"alg": "RS256", "kid": "rsa-1"}, key="rsa"), "kid", jwks=jwks(jwk("rsa", e=number(1))))
k("rsa-even-e", "an even exponent", token(key="rsa"), "kid", jwks=jwks(jwk("rsa", e=number(65536))))
k("rsa-huge-e", "an exponent that only costs time", token(key="rsa"), "kid", jwks=jwks(jwk("rsa", e=number(2**64 + 1))))
k("rsa-even-n", "an even modulus", token(key="rsa"), "kid", jwks=jwks(jwk("rsa", n=number(KEYS["rsa"].public_key().public_numbers().n - 1))))
k("rsa-leading-zero", "numbers have no leading zeros (RFC 7518 section 2)", token(key="rsa"), "kid", jwks=jwks(jwk("rsa", n=b64(b"\0" + KEYS["rsa"].public_key().public_numbers().n.to_bytes(256, "big")))))
k("rsa-16384", "a modulus that only costs time", token(key="rsa"), "kid", jwks=jwks(jwk("rsa", n=b64(b"\xff" * 2048))))
k("rsa-n-padded", "numbers are base64url without padding", token(key="rsa"), "kid", jwks=jwks(jwk("rsa", n=number(KEYS["rsa"].public_key().public_numbers().n) + "==")))
k("rsa-no-n", "no modulus", token(key="rsa"), "kid", jwks=jwks(jwk("rsa", n=None)))
k("ec-no-y", "half a point", token(), "kid", jwks=jwks(jwk("ec", y=None)))
k("ec-off-curve", "a point that is none of the curve's: invalid curve attack", token(), "kid", jwks=jwks(jwk("ec", y=b64(b"\1" * 32))))
k("ec-infinity", "the point at infinity", token(signature=b"\0" * 64), "kid", jwks=jwks(jwk("ec", x=b64(b"\0" * 32), y=b64(b"\0" * 32))))
k("ec-short-x", "coordinates have their full length (RFC 7518 section 6.2.1.2)", token(), "kid", jwks=jwks(jwk("ec", x=b64(b"\1" * 31))))
k("ec-long-x", "coordinates have their full length", token(), "kid", jwks=jwks(jwk("ec", x=b64(b"\0" + KEYS["ec"].public_key().public_numbers().x.to_bytes(32, "big")))))
k("ec-beyond-field", "x + p is no coordinate", token(), "kid", jwks=jwks(jwk("ec", x=b64(b"\xff" * 32))))
k("ec-crv-p384", "a P-256 point that says P-384", token(), "kid", jwks=jwks(jwk("ec", crv="P-384")))
k("ec-crv-missing", "no curve", token(), "kid", jwks=jwks(jwk("ec", crv=None)))
k("ec-secp256k1-as-p256", "another curve's point as one of P-256", token({"alg": "ES256", "kid": "p"}, key="secp256k1", alg="ES256K"), "kid", jwks=jwks(jwk("secp256k1", "p", crv="P-256", alg="ES256")))
k("es256-with-p384-key", "ES256 with a key on P-384", token({"alg": "ES256", "kid": "p"}, key="p384"), "kid", jwks=jwks(jwk("p384", "p", alg="ES256")))
k("kty-lower-case", "ec is no key type", token(), "kid", jwks=jwks(jwk("ec", kty="ec")))
k("kty-missing", "no key type", token(), "kid", jwks=jwks(jwk("ec", kty=None)))
k("okp-as-ec", "an Ed25519 key", token({"alg": "ES256", "kid": "ed-1"}), "kid", jwks=jwks(jwk("ed25519")))
k("two-keys-one-kid", "two keys under one id: no guess", token(), "kid", jwks=jwks(jwk("ec"), jwk("ec-other")))
k("two-keys-one-kid-reversed", "in either order", token(), "kid", jwks=jwks(jwk("ec-other"), jwk("ec")))
k("no-keys", "an empty set", token(), "kid", jwks=jwks())
k("keys-null", "no list of keys", token(), "kid", jwks={"keys": None})
k("keys-missing", "a single key is no set", token(), "kid", jwks=jwk("ec"))
k("keys-text", "a key that is no object", token(), "kid", jwks=jwks("ec-1"))
k("jwks-text", "a set that is no object", token(), "kid", jwks="https://issuer.example/keys")
k("jwks-list", "a list is no set", token(), "kid", jwks=[jwk("ec")])
k("jwks-null", "no keys and no installation", token(), "kid", jwks=None)
k("too-many-keys", "more keys than anybody publishes", token(), "kid", jwks=jwks(*[jwk("ec", f"k{i}") for i in range(101)]))

# ---------------------------------------------------------------- signature
s = lambda *x, **q: case("signature", *x, **q)
one, zero = (1).to_bytes(32, "big"), b"\0" * 32
for rn, r in {"0": 0, "1": 1, "n-1": N - 1, "n": N, "p": P, "2^256-1": 2**256 - 1}.items():
    for sn, x in {"0": 0, "1": 1, "n-1": N - 1, "n": N, "2^256-1": 2**256 - 1}.items():
        s(f"ecdsa-r-{rn}-s-{sn}", "numbers at the edges of the range", token(signature=r.to_bytes(32, "big") + x.to_bytes(32, "big")), "signature")
s("none", "no signature", token(signature=b""), "signature")
s("der", "ASN.1 instead of two numbers", token(signature=lambda d: KEYS["ec"].sign(d, ec.ECDSA(hashes.SHA256()))), "signature")
s("truncated-es", "an octet short", token(signature=lambda d: raw_sign("ES256", "ec", d)[:-1]), "signature")
s("truncated-es-half", "r alone", token(signature=lambda d: raw_sign("ES256", "ec", d)[:32]), "signature")
s("long-es", "an octet too long", token(signature=lambda d: raw_sign("ES256", "ec", d) + b"\0"), "signature")
s("zero-before-es", "a zero before r", token(signature=lambda d: b"\0" + raw_sign("ES256", "ec", d)), "signature")
s("both-padded-es", "both numbers with a leading zero", token(signature=lambda d: (lambda g: b"\0" + g[:32] + b"\0" + g[32:])(raw_sign("ES256", "ec", d))), "signature")
s("swapped", "s before r", token(signature=lambda d: (lambda g: g[32:] + g[:32])(raw_sign("ES256", "ec", d))), "signature")
s("negated-r", "n - r", token(signature=lambda d: (lambda g: (N - int.from_bytes(g[:32], "big")).to_bytes(32, "big") + g[32:])(raw_sign("ES256", "ec", d))), "signature")
s("other-key-es", "signed by somebody else under this kid", token(key="ec-other"), "signature")
s("other-key-rs", "signed by somebody else under this kid", token({"alg": "RS256", "kid": "rsa-1"}, key="rsa-other"), "signature")
s("wrong-hash-rs", "SHA-512 inside, RS256 outside", token(key="rsa", signature=lambda d: raw_sign("RS512", "rsa", d)), "signature")
s("wrong-hash-sha1", "SHA-1 inside, RS256 outside", token(key="rsa", signature=lambda d: raw_sign("RS1", "rsa", d)), "signature")
s("pss-as-rs256", "PSS padding under RS256", token(key="rsa", signature=lambda d: raw_sign("PS256", "rsa", d)), "signature")
s("truncated-rs", "an octet short", token(key="rsa", signature=lambda d: raw_sign("RS256", "rsa", d)[:-1]), "signature")
s("long-rs", "a zero more", token(key="rsa", signature=lambda d: raw_sign("RS256", "rsa", d) + b"\0"), "signature")
s("zero-before-rs", "a zero before", token(key="rsa", signature=lambda d: b"\0" + raw_sign("RS256", "rsa", d)), "signature")
s("zero-rs", "all zeros", token(key="rsa", signature=b"\0" * 256), "signature")
s("one-rs", "the number one", token(key="rsa", signature=b"\0" * 255 + b"\1"), "signature")
s("modulus-rs", "the modulus itself", token(key="rsa", signature=KEYS["rsa"].public_key().public_numbers().n.to_bytes(256, "big")), "signature")
s("plus-modulus-rs", "the signature plus the modulus, where it fits", token(key="rsa", signature=lambda d: (lambda g, n: ((g + n) % 2**2048).to_bytes(256, "big"))(int.from_bytes(raw_sign("RS256", "rsa", d), "big"), KEYS["rsa"].public_key().public_numbers().n)), "signature")


def cube_root_forgery(data):
    """Bleichenbacher's forgery for e = 3: a cube that begins like a padded hash, with rubbish behind it."""
    digest_info = bytes.fromhex("3031300d060960864801650304020105000420") + hashlib.sha256(data).digest()
    prefix = b"\0\1" + b"\xff" * 8 + b"\0" + digest_info
    target = int.from_bytes(prefix + b"\xff" * (256 - len(prefix)), "big")
    lo, hi = 0, 1 << 700
    while lo < hi:
        mid = (lo + hi + 1) // 2
        lo, hi = (mid, hi) if mid**3 <= target else (lo, mid - 1)
    assert (lo**3).to_bytes(256, "big").startswith(prefix)
    return lo.to_bytes(256, "big")


s("bleichenbacher-e3", "a cube root that begins like the padding", token({"alg": "RS256", "kid": "e3"}, key="rsa-e3", signature=cube_root_forgery), "signature", jwks=jwks(jwk("rsa-e3", "e3")))


def custom_padding(make):
    def sign(data):
        n = KEYS["rsa"].private_numbers()
        padded = make(hashlib.sha256(data).digest())
        assert len(padded) == 256
        return pow(int.from_bytes(padded, "big"), n.d, n.public_numbers.n).to_bytes(256, "big")
    return sign


INFO = bytes.fromhex("3031300d060960864801650304020105000420")
for name, make in {
    "short-ff": lambda h: b"\0\1" + b"\xff" * 8 + b"\0" + INFO + h + b"\0" * (256 - 11 - len(INFO) - 32), "type-2": lambda h: b"\0\2" + b"\xff" * (256 - 3 - len(INFO) - 32) + b"\0" + INFO + h,
    "no-info": lambda h: b"\0\1" + b"\xff" * (256 - 3 - 32) + b"\0" + h, "no-null": lambda h: (lambda i: b"\0\1" + b"\xff" * (256 - 3 - len(i) - 32) + b"\0" + i + h)(bytes.fromhex("302f300b0609608648016503040201" "0420")),
    "ff-replaced": lambda h: b"\0\1" + b"\xff" * 20 + b"\xfe" + b"\xff" * (256 - 24 - len(INFO) - 32) + b"\0" + INFO + h, "ber-length": lambda h: (lambda i: b"\0\1" + b"\xff" * (256 - 3 - len(i) - 32) + b"\0" + i + h)(bytes.fromhex("308131300d060960864801650304020105000420")),
}.items():
    s("padding-" + name, "PKCS #1 padding that is not exactly the one there is", token(key="rsa", signature=custom_padding(make)), "signature")
s("other-payload", "the payload of another token", head + "." + part(claims(sub="somebody.else")) + "." + sig, "signature")
s("other-header", "the header of another token", part({"kid": "ec-1", "alg": "ES256"}) + "." + body + "." + sig, "signature")
s("moved-dot", "the signature is over the text with its dots", token(payload=claims(sub="x"), signature=lambda d: raw_sign("ES256", "ec", d.replace(b".", b""))), "signature")
s("over-decoded", "a signature over the decoded parts", token(signature=lambda d: raw_sign("ES256", "ec", b".".join(base64.urlsafe_b64decode(x + b"==") for x in d.split(b".")))), "signature")
s("psychic", "zeros, as CVE-2022-21449 took them", token(signature=b"\0" * 64), "signature")
s("skip-still-signature", "claims skip does not skip the signature", token(key="ec-other"), "signature", claims="skip")

# ---------------------------------------------------------------- claims
c = lambda *x, **q: case("claims", *x, **q)
for name, raw in {
    "not-json": b"hello", "array": b"[]", "null": b"null", "bom": b"\xef\xbb\xbf" + json.dumps(claims()).encode(), "trailing-data": json.dumps(claims()).encode() + b"x",
    "duplicate-sub": json.dumps(claims()).encode()[:-1] + b', "sub": "admin"}', "duplicate-aud": b'{"aud":"com.other",' + json.dumps(claims()).encode()[1:],
    "duplicate-exp": b'{"exp":1,' + json.dumps(claims()).encode()[1:], "duplicate-nested": json.dumps(claims()).encode()[:-1] + b', "x": {"a":1,"a":2}}',
    "duplicate-escaped": json.dumps(claims()).encode()[:-1] + b', "\\u0073ub": "admin"}', "lone-surrogate": json.dumps(claims()).encode()[:-1] + b', "x": "\\ud800"}', "nul": json.dumps(claims()).encode()[:-1] + b', "x": "\\u0000"}',
    "invalid-utf8": json.dumps(claims()).encode()[:-1] + b', "x": "\xc3\x28"}', "deep": json.dumps(claims()).encode()[:-1] + b', "x": ' + b'{"a":' * 100 + b"1" + b"}" * 100 + b"}", "infinity": json.dumps(claims()).encode()[:-1] + b', "x": Infinity}',
    "long-number": json.dumps(claims()).encode()[:-1] + b', "x": 1' + b"0" * 100 + b"}", "latin-1": json.dumps(claims(name="\u00fc"), ensure_ascii=False).encode("latin-1"),
}.items():
    c("payload-" + name, "signed, but the payload is no strict JSON object", token(payload=raw), "format")
for name, value in {"other": "https://evil.example", "slash": ISS + "/", "case": "https://ISSUER.example", "prefix": ISS[:-1], "suffix": ISS + ".evil.example", "missing": ..., "null": None, "list": [ISS], "empty": "", "nul-like": ISS + "\u0001"}.items():
    c("iss-" + name, "iss is the issuer, octet by octet", token(payload=claims(iss=value)), "iss")
for name, value in {"other": "com.example.other", "list-of-two": [AUD, "com.example.other"], "list-twice": [AUD, AUD], "empty-list": [], "nested-list": [[AUD]], "missing": ..., "null": None, "number": 1, "prefix": AUD[:-1], "suffix": AUD + ".x", "case": AUD.upper(), "space": AUD + " ", "star": "*", "empty": "", "object": {AUD: True}, "list-of-number": [1]}.items():
    c("aud-" + name, "aud is the asking app, alone", token(payload=claims(aud=value)), "aud")
for name, value in {"missing": ..., "null": None, "number": 1, "empty": "", "list": ["a"], "long": "s" * 256, "newline": "a\nb", "del": "a\u007f"}.items():
    c("sub-" + name, "sub is a text of 1 to 255 octets", token(payload=claims(sub=value)), "sub")
for name, value in {"past": NOW - 3600, "at-leeway": NOW - 60, "zero": 0, "negative": -1, "missing": ..., "null": None, "text": str(NOW + 600), "true": True, "list": [NOW + 600], "empty-text": "", "before-iat": NOW - 20, "fraction-past": NOW - 60.5}.items():
    c("exp-" + name, "exp lies ahead, and is a number", token(payload=claims(exp=value, iat=NOW - 10 if name == "before-iat" else -5000)), "exp")
for name, text in {"huge": "1e300", "beyond-int64": "99999999999999999999", "beyond-2-53": "9007199254740994"}.items():
    c("exp-" + name, "a time beyond every clock", token(payload=json.dumps(claims(exp=...)).encode()[:-1] + b', "exp": ' + text.encode() + b"}"), "exp")
for name, value in {"future": NOW + 3600, "just-future": NOW + 61, "fraction-future": NOW + 60.5, "missing": ..., "null": None, "text": str(NOW)}.items():
    c("iat-" + name, "iat lies behind, and is a number", token(payload=claims(iat=value, exp=NOW + 7200)), "iat")
for name, value in {"future": NOW + 3600, "text": "0", "null": None}.items():
    c("nbf-" + name, "nbf, where there is one, lies behind", token(payload=claims(nbf=value)), "nbf")
for name, more in {"email-number": {"email": 5}, "email-null": {"email": None}, "email-verified-number": {"email_verified": 1}, "email-verified-text": {"email_verified": "yes"}, "email-verified-case": {"email_verified": "True"}, "private-list": {"is_private_email": []}, "nonce-supported-number": {"nonce_supported": 0}, "org-number": {"org_id": 1}, "transfer-empty": {"transfer_sub": ""}, "auth-time-text": {"auth_time": "x"}}.items():
    c(name, "a claim of the wrong type", token(payload=claims(**more)), "claims")

# ---------------------------------------------------------------- nonce
n = lambda *x, **q: case("nonce", *x, **q)
n("other", "the nonce of another sign-in: a token that is used again", token(payload=claims(nonce="n-another")), "nonce")
n("case", "compared exactly", token(payload=claims(nonce=NONCE.lower())), "nonce")
n("prefix", "compared in full", token(payload=claims(nonce=NONCE[:-1])), "nonce")
n("only-asker", "the token has none", token(payload=claims(nonce=...)), "nonce")
n("only-asker-unsaid", "the token has none and does not say that it cannot", token(payload=claims(nonce=..., nonce_supported=...)), "nonce")
n("only-token", "the asker sent none", token(), "nonce", nonce=None)
n("empty-asker", "an empty nonce is none that anybody made", token(), "nonce", nonce="")
n("empty-claim", "an empty nonce is none that anybody made", token(payload=claims(nonce="")), "nonce")
n("number", "a nonce is a text", token(payload=claims(nonce=1)), "nonce")
n("null", "a nonce is a text", token(payload=claims(nonce=None)), "nonce")
n("unsupported-but-other", "two that differ are refused whatever the token says", token(payload=claims(nonce="n-another", nonce_supported=False)), "nonce")
n("hashed-as-raw", "the hash where the nonce itself belongs", token(payload=claims(nonce=hashlib.sha256(NONCE.encode()).hexdigest())), "nonce")
n("raw-as-hashed", "the nonce itself where its hash belongs", token(), "nonce", nonce_form="sha256_hex")
n("hash-of-hash", "the asker sent the hash already", token(payload=claims(nonce=hashlib.sha256(NONCE.encode()).hexdigest())), "nonce", nonce=hashlib.sha256(NONCE.encode()).hexdigest(), nonce_form="sha256_hex")
n("hash-upper-case", "lower-case hexadecimal", token(payload=claims(nonce=hashlib.sha256(NONCE.encode()).hexdigest().upper())), "nonce", nonce_form="sha256_hex")
n("hash-base64", "hexadecimal, not base64url", token(payload=claims(nonce=b64(hashlib.sha256(NONCE.encode()).digest()))), "nonce", nonce_form="sha256_hex")
n("equivalent", "texts that Unicode calls equivalent differ", token(payload=claims(nonce="\u00e9")), "nonce", nonce="e\u0301")
n("long", "longer than any nonce", token(payload=claims(nonce="n" * 600)), "nonce", nonce="n" * 600)

total = 0
for file, entries in FILES.items():
    with open(os.path.join(HERE, file + ".jsonl"), "w") as output:
        for entry in entries:
            output.write(json.dumps(entry, separators=(",", ":")) + "\n")
    total += len(entries)
    print(f"{file}: {len(entries)}")
print(f"{total} in all")
