"""The rest of the world, on the loopback interface of a network namespace of its own: a name server and mail servers, for relay.example, for
the team of juice.example, and for the inboxes of home.example. `python3 world.py RECORDS` runs them until it is killed; RECORDS is a file with
more DNS records, which may come later."""
import os, smtplib, socket, struct, subprocess, sys, threading

RELAY, JUICE, HOME = "192.0.2.1", "192.0.2.10", "192.0.2.20"


def addresses(*more):
    """Gives this network namespace its addresses."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    for address in (RELAY, JUICE, HOME, *more): subprocess.run(["ip", "address", "add", address + "/32", "dev", "lo"], check=True)


def check(condition, what):
    if not condition: raise SystemExit(f"failed: {what}")


def name(text): return b"".join(bytes([len(part)]) + part.encode() for part in text.rstrip(".").split(".") if part) + b"\0"


class Names(threading.Thread):
    """A name server. What is not in its records is looked for in a file of lines `OWNER TXT|A VALUE`, where there is one."""

    def __init__(self, more=None):
        super().__init__(daemon=True)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 53))
        self.records, self.more = {}, more
        for domain, address in (("relay.example", RELAY), ("juice.example", JUICE), ("home.example", HOME)):
            self.add(domain, 15, struct.pack("!H", 10) + name("mx." + domain))
            self.add(domain, 16, self.txt(f"v=spf1 ip4:{address} -all"))
            self.add("mx." + domain, 1, socket.inet_aton(address))
            self.add(domain, 1, socket.inet_aton(address))
            self.add("mx." + domain, 16, self.txt("v=spf1 a -all"))
            self.add("_dmarc." + domain, 16, self.txt(f"v=DMARC1; p=reject; rua=mailto:dmarc@{domain}"))
            self.add(".".join(reversed(address.split("."))) + ".in-addr.arpa", 12, name("mx." + domain))

    @staticmethod
    def txt(text):
        octets = text.encode()
        return b"".join(bytes([len(part)]) + part for part in (octets[start:start + 255] for start in range(0, len(octets), 255)))

    def publish(self, printed):
        """What `postern keys dkim publish` printed."""
        owner, records = None, {}
        for line in printed.splitlines():
            words = line.split(maxsplit=1)
            if words and "._domainkey." in words[0]: owner = words[0].rstrip(".")
            if owner: records[owner] = records.get(owner, "") + "".join(line.split('"')[1::2])
        check(records, "a DKIM record is printed")
        for owner, value in records.items(): self.add(owner, 16, self.txt(value))

    def add(self, owner, kind, data): self.records.setdefault((owner.lower(), kind), []).append(data)

    def read(self):
        records = {}
        if self.more and os.path.exists(self.more):
            for line in open(self.more):
                owner, kind, value = line.strip().split(" ", 2)
                data = (16, self.txt(value)) if kind == "TXT" else (1, socket.inet_aton(value))
                records.setdefault((owner.lower().rstrip("."), data[0]), []).append(data[1])
        return self.records | records

    def run(self):
        while True:
            question, client = self.socket.recvfrom(4096)
            end, labels = 12, []
            while question[end]:
                labels.append(question[end + 1:end + 1 + question[end]].decode("latin1"))
                end += question[end] + 1
            end += 5
            owner, kind = ".".join(labels).lower(), struct.unpack("!H", question[end - 4:end - 2])[0]
            records = self.read()
            answers = records.get((owner, kind), [])
            known = any(owner == other or other.endswith("." + owner) for other, _ in records)
            head = question[:2] + struct.pack("!HHHHH", 0x8580 | (0 if known else 3), 1, len(answers), 0, 0)
            body = b"".join(b"\xc0\x0c" + struct.pack("!HHIH", kind, 1, 60, len(data)) + data for data in answers)
            self.socket.sendto(head + question[12:end] + body, client)


class Sink(threading.Thread):
    """Takes mail."""

    def __init__(self, address):
        super().__init__(daemon=True)
        self.messages, self.arrived = [], threading.Condition()
        self.socket = socket.create_server((address, 25))

    def run(self):
        while True:
            client, _ = self.socket.accept()
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        lines = client.makefile("rb")
        def say(text): client.sendall(text.encode() + b"\r\n")
        say("220 mx")
        envelope, message = [], None
        for line in lines:
            if message is not None:
                if line == b".\r\n":
                    with self.arrived:
                        self.messages.append((envelope, b"".join(message).decode("utf-8", "replace")))
                        self.arrived.notify_all()
                    envelope, message = [], None
                    say("250 taken")
                else: message.append(line[1:] if line.startswith(b"..") else line)
                continue
            word = line.split(b" ")[0].strip().upper()
            if word in (b"MAIL", b"RCPT"): envelope.append(line.decode().strip())
            if word == b"DATA": message = []
            say({b"DATA": "354 go on", b"QUIT": "221 bye"}.get(word, "250 mx"))
            if word == b"QUIT": break
        client.close()

    def next(self):
        with self.arrived:
            check(self.arrived.wait_for(lambda: self.messages, timeout=60), "no message arrived within a minute")
            return self.messages.pop(0)


def send(source, sender, recipient, message):
    with smtplib.SMTP(RELAY, 25, source_address=(source, 0), timeout=60) as client:
        client.sendmail(sender, [recipient], message)


def both_ways(address, home, juice):
    """A message of the team to a relay address of jane@home.example, and her answer."""
    send(JUICE, "orders@juice.example", address,
         f"From: Juice <orders@juice.example>\r\nTo: <{address}>\r\nSubject: Order 42\r\nMessage-ID: <42@juice.example>\r\n\r\nThank you.\r\n")
    envelope, message = home.next()
    check("jane@home.example" in envelope[1] and "@relay.example" in envelope[0], f"the envelope of the forward: {envelope}")
    check("Thank you." in message and "DKIM-Signature:" in message, "the forward has its text and is signed")
    reverse = next(line for line in message.splitlines() if line.startswith("From:")).split("<")[1].split(">")[0]
    send(HOME, "jane@home.example", reverse,
         f"From: Jane Doe <jane@home.example>\r\nTo: <{reverse}>\r\nSubject: Re: Order 42\r\nMessage-ID: <a@home.example>\r\n\r\nYou are welcome.\r\n")
    envelope, message = juice.next()
    check("orders@juice.example" in envelope[1] and "You are welcome." in message, f"the answer arrives: {envelope}")
    check("jane" not in message.lower().replace(address, "") and "home.example" not in message and address in message, f"nothing of the inbox:\n{message}")


if __name__ == "__main__":
    if len(sys.argv) != 2: sys.exit(__doc__)
    addresses("9.9.9.10")
    servers = [Names(sys.argv[1]), Sink(JUICE), Sink(HOME)]
    for server in servers: server.start()
    print("ready", flush=True)
    servers[0].join()
