"""Tokens between Postern and PyJWT, both ways.

    pyjwt_check.py verify   standard input: {"jwks": {…}, "token": …, "aud": …, "iss": …, "nonce": …, "events": [body…]}
                            verifies all of them as a team's backend would, prints what they say
    pyjwt_check.py mint     prints lines of `postern verify token --batch` with tokens that PyJWT signed
"""
import json, sys, time
import jwt
from jwt.algorithms import ECAlgorithm, RSAAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, rsa


class FixedKeys(jwt.PyJWKClient):
    """PyJWKClient with the network taken out: it fetches the set that it was given."""

    def __init__(self, document):
        super().__init__("https://relay.example/auth/keys")
        self.document = document

    def fetch_data(self):
        return self.document


def verify():
    question = json.load(sys.stdin)
    keys = FixedKeys(question["jwks"])
    options = {"require": ["exp", "iat", "iss", "aud", "sub"], "verify_exp": False, "verify_iat": False}
    key = keys.get_signing_key_from_jwt(question["token"])
    claims = jwt.decode(question["token"], key.key, algorithms=["ES256"], audience=question["aud"], issuer=question["iss"], options=options)
    events = []
    for body in question["events"]:
        payload = json.loads(body)["payload"]
        event = jwt.decode(payload, keys.get_signing_key_from_jwt(payload).key, algorithms=["ES256"], audience=question["aud"],
                           issuer=question["iss"], options={"require": ["iat", "jti"], "verify_iat": False})
        event["events"] = json.loads(event["events"])
        events.append(event)
    other = json.loads(json.dumps(question["jwks"]))
    refused = 0
    try:
        jwt.decode(question["token"][:-4] + "AAAA", key.key, algorithms=["ES256"], audience=question["aud"], options=options)
    except jwt.InvalidSignatureError:
        refused = 1
    print(json.dumps({"claims": claims, "events": events, "refused": refused, "kids": [k["kid"] for k in other["keys"]]}))


def mint():
    now = 1790000000
    ec_key, rsa_key = ec.generate_private_key(ec.SECP256R1()), rsa.generate_private_key(65537, 2048)
    jwks = {"keys": [{**ECAlgorithm.to_jwk(ec_key.public_key(), as_dict=True), "kid": "e", "use": "sig", "alg": "ES256"},
                     {**RSAAlgorithm.to_jwk(rsa_key.public_key(), as_dict=True), "kid": "r", "use": "sig", "alg": "RS256"}]}
    claims = {"iss": "https://issuer.example", "aud": "com.example.juice", "sub": "s", "iat": now, "exp": now + 60, "nonce": "n"}
    for number in range(20):
        for alg, key, kid in (("ES256", ec_key, "e"), ("RS256", rsa_key, "r")):
            token = jwt.encode({**claims, "number": number}, key, algorithm=alg, headers={"kid": kid})
            print(json.dumps({"id": f"{alg}-{number}", "token": token, "jwks": jwks, "iss": claims["iss"], "aud": claims["aud"],
                              "nonce": "n", "now": now, "claims": "check"}))


{"verify": verify, "mint": mint}[sys.argv[1]]()
