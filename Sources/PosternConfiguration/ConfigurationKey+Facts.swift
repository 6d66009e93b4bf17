// The fixed facts about each configuration key. The template of `init`, `config show` and
// docs/CONFIGURATION.md show them.

import Accounts
import SignIn

extension ConfigurationKey {
    package var facts: Facts {
        switch self {
        case .relayDomains:
            Facts(
                .domains, .required, live: true,
                "The domains of relay addresses. New addresses are issued in the first; the others keep working."
            )
        case .formerRelayDomains:
            Facts(
                .domains, .value(.list([])),
                "Former domains of relay addresses: Postern does not handle their mail. A domain that has addresses must be here or in "
                    + "relay_domains, so that a typing error in relay_domains stops no mail.")
        case .database:
            Facts(
                .text, .value(.text("postern.db")),
                "The SQLite file, relative to the folder of this file: nothing to install or to start. Several hosts: postgresql://user@host/name."
            )
        case .databaseConnections:
            Facts(
                .integer(2...500), .value(.integer(10)),
                "Connections of one postern serve to PostgreSQL, and one or two more for locks. A look-up takes a fraction of a millisecond."
            )
        case .databaseReplica:
            Facts(
                .text, .absent,
                "A standby of the same PostgreSQL, as a URL: listings, statistics, backtests and the audit are read there if it has caught up. "
                    + "Mail, decisions and sign-in never are.")
        case .keyFile:
            Facts(
                .text, .value(.text("postern.keys")),
                "The keys that open inboxes and sign tokens, mode 0600. Keep it apart from backups of the database."
            )
        case .hostname:
            Facts(
                .domain,
                .derived("this machine's name, or the first relay domain if that name has no dot"),
                "The host name of this machine in mail that it writes.")
        case .authservID:
            Facts(
                .token, .derived("the first relay domain"), live: true,
                "Our name in Authentication-Results (RFC 8601 section 2.5): one for all hosts of the relay."
            )
        case .trustedAuthservIDs:
            Facts(
                .words, .value(.list([])), live: true,
                "Filters before this one whose Authentication-Results are trusted. None by default: a filter named here can vouch for any sender."
            )
        case .operatorAddress:
            Facts(
                .address, .absent, live: true,
                "Where mail to postmaster and abuse at the relay domains goes (RFC 2142). Set it before going live."
            )
        case .localRecipients:
            Facts(
                .addresses, .value(.table([:])), live: true,
                "Further local parts at the relay domains, and the addresses that get their mail: DMARC reports, TLS-RPT, feedback loops."
            )
        case .blockLists:
            Facts(
                .domains, .value(.list([])),
                "Lists of IP addresses in which postern doctor looks for this host (RFC 5782). Each has terms of use: name only lists that you may query."
            )
        case .addressLength:
            Facts(
                .integer(10...16), .value(.integer(10)),
                "Random characters of a new relay address. Ten are 50 bits: hard to guess, and short enough to read over the telephone."
            )
        case .returnPathDays:
            Facts(
                .integer(1...60), .value(.integer(14)), live: true,
                "How long a bounce is accepted: more than twice the five days that servers commonly keep trying."
            )
        case .fanOut:
            Facts(
                .choice(["on", "off"]), .value(.text("on")), live: true,
                "Whether a message to several users is accepted in one transaction, with a copy for each. Otherwise all but one get 452 and wait."
            )
        case .fanOutSmtpd:
            Facts(
                .endpoint, .value(.text("127.0.0.1:8892")), live: true,
                "Where copies are submitted, HOST:PORT: an smtpd of this Postfix that accepts XCLIENT from Postern; setup postfix creates it."
            )
        case .postfixDirectory:
            Facts(
                .text, .value(.text("/etc/postfix")),
                "Where Postfix's main.cf is: doctor reads it, and serve checks that Postfix's queue each minute for mail that was not rewritten (group postdrop)."
            )
        case .milterSocket:
            Facts(
                .socket, .value(.text("inet:8891@127.0.0.1")),
                "Where Postfix connects. A TCP port works whether Postfix runs in a chroot or not.")
        case .milterSocketMode:
            Facts(
                .mode, .value(.text("0660")),
                "Permissions of a unix socket: owner and group. Any client can find out which addresses exist. If everyone may connect, only milter.peers keeps other users out."
            )
        case .milterPeers:
            Facts(
                .words, .value(.list(["postfix"])),
                "Users of this machine who may connect to milter.socket, besides root and Postern's user: Postfix's mail_owner. If none is named or none exists "
                    + "here, every user may. Any client can pretend to be Postfix, and find out where mail goes."
            )
        case .limitsMessagesPerDay:
            Facts(
                .integer(1...1_000_000), .value(.integer(100)),
                beyond: .tryLater(code: 452, enhanced: "4.7.1"), live: true,
                "Messages a day, per account and direction: the figure of the service that senders know."
            )
        case .limitsMessageSize:
            Facts(
                .size(100_000...1_000_000_000), .value(.integer(40_000_000)),
                beyond: .refuse(code: 552, enhanced: "5.3.4"),
                live: true,
                "Octets of a message, as Postfix's message_size_limit in our setup. 25 MB of attachments are 34 MB in base64."
            )
        case .limitsHeaderField:
            Facts(
                .size(1_000...59_900), .value(.integer(59_900)),
                beyond: .refuse(code: 550, enhanced: "5.6.0"), live: true,
                "Octets of one header field. Postfix truncates fields at 60,000 for a milter, so a field of nearly that size may be truncated."
            )
        case .limitsHeaderFields:
            Facts(
                .integer(50...100_000), .value(.integer(1_000)),
                beyond: .refuse(code: 550, enhanced: "5.6.0"), live: true,
                "Header fields of a message. Real mail has under 200.")
        case .limitsHeaderSize:
            Facts(
                .size(10_000...10_000_000), .value(.integer(262_144)),
                beyond: .refuse(code: 550, enhanced: "5.6.0"), live: true,
                "Octets of all header fields. Postfix's own header_size_limit is 102,400.")
        case .limitsHops:
            Facts(
                .integer(5...200), .value(.integer(50)),
                beyond: .refuse(code: 554, enhanced: "5.4.6"), live: true,
                "Hops of a message before it counts as a loop: Postfix's hopcount_limit.")
        case .limitsRecipients:
            Facts(
                .integer(1...1_000), .value(.integer(100)),
                beyond: .tryLater(code: 452, enhanced: "4.5.3"), live: true,
                "Recipients of one transaction: the minimum of RFC 5321 section 4.5.3.1.8.")
        case .limitsReplyMemory:
            Facts(
                .size(10_000_000...100_000_000_000), .value(.integer(256_000_000)),
                beyond: .tryLater(code: 452, enhanced: "4.3.1"),
                "Octets of memory for replies at one time, over all sessions: for their content, and for rewriting, which needs four times the largest reply."
            )
        case .suspensionFailures:
            Facts(
                .integer(0...10_000), .value(.integer(5)), live: true,
                "Permanent failures of an inbox within the window that suspend forwarding to it: a few may be a server's mistake. 0: never."
            )
        case .suspensionPercent:
            Facts(
                .integer(1...100), .value(.integer(50)), live: true,
                "And their percentage of the messages forwarded to it: a deleted mailbox refuses all messages, a filter single ones."
            )
        case .suspensionDays:
            Facts(
                .integer(1...30), .value(.integer(14)), live: true,
                "The window in days for both, including today: the time that a bounce may take with the default return_path_days."
            )
        case .deliveryLog:
            Facts(
                .text, .absent,
                "Postfix's log on this host, as in /var/log/mail.log: postern serve reads in it which forwards were delivered, and which wait. "
                    + "Its user must be able to read it (on Debian: the group adm).")
        case .deliveryLimit:
            Facts(
                .choice(["on", "off"]), .value(.text("on")), live: true,
                "Whether mail of a team to a provider is slowed, and then held, after complaints of users or refusals for its reputation: all teams share the reputation of your hosts."
            )
        case .deliveryUsers:
            Facts(
                .integer(10...10_000), .value(.integer(10)), live: true,
                "Different users of one provider that are needed for this, so that no few users can stop a team."
            )
        case .deliveryMessages:
            Facts(
                .integer(100...10_000_000), .value(.integer(1_000)), live: true,
                "Messages of the team to the provider within seven days that are needed: among few, one complaint is a large share."
            )
        case .deliveryComplaints:
            Facts(
                .integer(0...1_000), .value(.integer(3)), live: true,
                "Users who complained, for each thousand of these messages, from which mail is slowed: Gmail and Yahoo require senders to stay below 0.3 %. 0: never."
            )
        case .deliveryRefusals:
            Facts(
                .integer(0...1_000), .value(.integer(50)), live: true,
                "Refusals for the sender's reputation for each thousand messages from which mail is slowed. 0: never."
            )
        case .deliveryHoldFactor:
            Facts(
                .integer(2...100), .value(.integer(3)), live: true,
                "Mail is held from this many times the thresholds; or from the thresholds alone, if it goes on for a day after the slowing."
            )
        case .deliverySlowedPerHour:
            Facts(
                .integer(1...1_000_000), .value(.integer(100)),
                beyond: .tryLater(code: 451, enhanced: "4.7.1"), live: true,
                "Messages an hour of a slowed team to the provider; the senders keep the rest and try again."
            )
        case .deliveryWarmUp:
            Facts(
                .day, .value(.text("off")), live: true,
                "The day (UTC) on which this host begins to send, as in 2026-11-30, or off: for 20 days it forwards only so many messages a day "
                    + "(451 4.4.5 beyond), each day half more. Providers defer or refuse a new host that sends much at once."
            )
        case .outgoingIdentities:
            Facts(
                .identities, .value(.identities([])), live: true,
                "Names and addresses by which forwards of some teams leave, by name, with helo and address, address6 or both; postern team outgoing gives a "
                    + "team one, and postern setup postfix sets Postfix. None: all mail leaves by Postfix's own, which is best for most hosts."
            )
        case .dnsServers:
            Facts(
                .nameServers, .value(.list([])), live: true,
                "Name servers, as in 127.0.0.1 or 127.0.0.1:5353. None: those of /etc/resolv.conf.")
        case .dnsTimeoutMilliseconds:
            Facts(
                .integer(100...30_000), .value(.integer(2_000)), live: true,
                "For one attempt at one server: far above any healthy response time, and leaves room for other attempts in the budget."
            )
        case .dnsTries:
            Facts(
                .integer(1...10), .value(.integer(3)), live: true,
                "Attempts for one query.")
        case .dnsBudgetMilliseconds:
            Facts(
                .integer(1_000...120_000), .value(.integer(20_000)), live: true,
                "For all queries about one message (RFC 7208 section 4.6.4: 20 s for SPF); then they count as temporary errors."
            )
        case .providers:
            Facts(
                .providers, .value(.providers(.standard)), live: true,
                "Spellings that reach one mailbox, by domain; elsewhere only +tags do not count. Entries add to these or replace them."
            )
        case .issuers:
            Facts(
                .issuers, .value(.issuers([])), live: true,
                "Issuers of identity tokens, by name, with iss, jwks_uri or jwks_file, algorithms, nonce_form and leeway; in addition to those of "
                    + "postern issuer add. None: no issuer is trusted by default.")
        case .serviceName:
            Facts(
                .title, .value(.text("Postern")),
                "The name of the service for users: in the mail that it writes to them, and on their page."
            )
        case .pageColour:
            Facts(
                .text, .absent,
                "The colour of links and buttons on the users' pages, as in #0f5c55: one that can be read on white. For dark screens it is lightened."
            )
        case .pageLogo:
            Facts(
                .text, .absent,
                "A square PNG file (64 to 1024 pixels, at most 200,000 octets) in place of Postern's mark on the users' pages; relative to the "
                    + "folder of this file, read at the start.")
        case .pageDeletionDays:
            Facts(
                .integer(0...30), .value(.integer(7)),
                "Days until the data of a user who requested deletion is deleted: until then the user can cancel it. 0 for at once."
            )
        case .pageHelp:
            Facts(
                .link, .absent,
                "Where users find help, for example after the loss of their inbox: a page or an address (mailto:). At the foot of every page."
            )
        case .pagePrivacy:
            Facts(.link, .absent, "Your privacy policy, at the foot of every page.")
        case .pageTerms:
            Facts(.link, .absent, "Your terms of use, at the foot of every page.")
        case .pageImprint:
            Facts(
                .link, .absent,
                "A page about you as the operator, at the foot of every page: the law of some countries requires it."
            )
        case .httpListen:
            Facts(
                .listen, .value(.text("127.0.0.1:8890")),
                "Where the HTTP API listens; off for none, port 0 for any free one. Beyond loopback only with a certificate."
            )
        case .httpPublicURL:
            Facts(
                .webAddress, .absent,
                "The address at which users reach the HTTP service, as in https://relay.example. Without it, users have no page /me, and mail has no links."
            )
        case .httpTLSCertificate:
            Facts(
                .text, .absent,
                "Certificate chain of the HTTP API (PEM), relative to the folder of this file; read again when it changes."
            )
        case .httpTLSKey:
            Facts(
                .text, .absent,
                "The private key of http.tls_certificate (PEM).")
        case .httpConnections:
            Facts(
                .integer(1...100_000), .value(.integer(2_000)),
                "Open HTTP connections; beyond this limit silent connections are closed, the longest silent first. A tenth is for proxies and this machine. "
                    + "Leaves file descriptors for mail, which has priority.")
        case .httpConnectionsPerClient:
            Facts(
                .integer(1...100_000), .value(.integer(200)),
                "Open HTTP connections of one IPv4 address or IPv6 /64, twice as many of a /56, four times of a /48 or an IPv4 /24; further ones "
                    + "are closed at once. A backend has some dozens. Loopback and http.trusted_proxies are not counted: a proxy limits its own clients."
            )
        case .httpTrustedProxies:
            Facts(
                .networks, .value(.list([])),
                "Reverse proxies on other machines, addresses or networks as in 192.0.2.0/24: the last entry of their X-Forwarded-For is "
                    + "trusted. Proxies on loopback always are; any other client could send what it likes."
            )
        case .httpBodySize:
            Facts(
                .size(1_024...10_000_000), .value(.integer(65_536)),
                "Octets of a request's body (413 beyond it). A decision's signals are some hundred octets."
            )
        case .httpRequestsPerSecond:
            Facts(
                .integer(1...100_000), .value(.integer(100)),
                "Requests a second of one API key, twice as many at once (429 beyond it): one key cannot starve the others."
            )
        case .mailSubmission:
            Facts(
                .endpoint, .value(.text("127.0.0.1:25")),
                "Where Postern's own mail is submitted, HOST:PORT: by default to Postfix on this machine."
            )
        case .mailSubmissionTLS:
            Facts(
                .choice(["none", "starttls", "implicit"]),
                .derived("none on loopback, starttls beyond it"),
                "How that connection is encrypted; the server's certificate must be for HOST. Links and codes are sent over it."
            )
        case .mailSubmissionUser:
            Facts(
                .text, .absent,
                "The user name for AUTH there. Without it, Postern does not authenticate, as Postfix on this machine expects."
            )
        case .mailSubmissionPasswordFile:
            Facts(
                .text, .absent,
                "A file with the password for mail.submission_user, mode 0600, relative to the folder of this file."
            )
        case .mailTrustedCertificates:
            Facts(
                .text, .absent,
                "Further certificate authorities (PEM) for mail.submission, besides the system's; relative to the folder of this file."
            )
        case .mailFrom:
            Facts(
                .address, .derived("postmaster at the first relay domain"),
                "Author of Postern's own mail. At a relay domain, so that the mail is signed.")
        case .mailTemplates:
            Facts(
                .text, .absent,
                "A folder with texts in place of the built-in English ones, relative to the folder of this file (docs/MAIL.md)."
            )
        case .providerIssuer:
            Facts(
                .webAddress,
                .derived("http.public_url; without it, users cannot sign in, and no event is sent"),
                "iss of the identity tokens and events that Postern signs, and where teams' backends reach /auth. Never change it once in use."
            )
        case .providerAuthorizationEndpoint:
            Facts(
                .text, .absent,
                "Your own sign-in page, which accepts the requests of apps itself and calls /v1/authorizations. Named in /.well-known/openid-configuration."
            )
        case .providerRefreshesPerDay:
            Facts(
                .integer(1...100_000), .value(.integer(100)),
                "Refreshes with one refresh token in a day (429 beyond it). An access token is valid for an hour: 24 are needed."
            )
        case .signInPage:
            Facts(
                .text, .absent,
                "The sign-in page of apps, which go to /auth/authorize: built-in, or the URL of your own. In place of provider.authorization_endpoint."
            )
        case .signInRequire:
            Facts(
                .choice(SignInLevel.allCases.map(\.rawValue)),
                .value(.text(SignInLevel.any.rawValue)),
                "How surely every user must have signed in: any way; by two factors (a passkey, or a code by mail and one of an authenticator app); by a passkey. Teams and apps can require more (postern team sign-in, postern app sign-in)."
            )
        case .signInRecoveryDays:
            Facts(
                .integer(0...30), .value(.integer(3)),
                "Days that a user waits who lost the second factor and has no recovery code. All inboxes and browsers of the user are told, and each can stop it. 0: only the administrator resets a second factor."
            )
        case .signInSignUp:
            Facts(
                .choice(["closed", "invited", "open"]), .value(.text("closed")),
                "The people who can become users on the built-in page with a code to their inbox: no one; users you added whose inbox is not confirmed yet; anyone."
            )
        case .signInSignUpDomains:
            Facts(
                .domains, .value(.list([])),
                "With sign_up: open, the domains whose inboxes become users. None: all of them.")
        case .signInUpstreamIssuer:
            Facts(
                .text, .absent,
                "Your OpenID provider (Keycloak, Authentik, Entra…), by which users may sign in here: its issuer, as in https://id.example/realms/main. "
                    + "Register there https://YOUR-HOST/me/upstream/callback as the redirect URI.")
        case .signInMessagesPerNetwork:
            Facts(
                .integer(1...1_000_000), .value(.integer(600)),
                "Messages that one network (an IPv4 address, an IPv6 /64) may request on the page in ten minutes: a school has many users behind one address."
            )
        case .signInWrongCodesPerNetwork:
            Facts(
                .integer(3...1_000_000), .value(.integer(60)),
                "Wrong codes and passkeys of one network in ten minutes, a third of them at once; right ones do not count."
            )
        case .signInWrongCodesPerHour:
            Facts(
                .integer(1...1_000_000_000), .value(.integer(1_000)),
                "Wrong codes of all networks in an hour. Beyond it, a code alone does not sign a user in on a new browser: the link in the message or a passkey does."
            )
        case .signInUpstreamClientID:
            Facts(
                .text, .absent,
                "Postern's client_id at the provider.")
        case .signInUpstreamSecretFile:
            Facts(
                .text, .absent,
                "A file (mode 600) with the client secret on its first line, relative to the folder of this file. None: a public client."
            )
        case .signInUpstreamName:
            Facts(
                .text, .derived("the issuer's host"),
                "The provider's name for users, on the button.")
        case .signInUpstreamScopes:
            Facts(
                .words, .value(.list(["openid", "email", "profile"])),
                "The scopes that Postern requests from the provider.")
        case .signInUpstreamLinks:
            Facts(
                .choice(["never", "verified-address"]), .value(.text("never")),
                "Whether a first sign-in from the provider is matched to an existing user with the same verified inbox. never: such people are refused, "
                    + "and sign in by a code. verified-address: for a provider whose addresses you trust as much."
            )
        case .signInUpstreamAddresses:
            Facts(
                .choice(["verified", "all"]), .value(.text("verified")),
                "The addresses that count as verified: those with email_verified; or all, if the provider does not send it and users cannot choose their address."
            )
        case .signInUpstreamOnly:
            Facts(
                .choice(["no", "yes"]), .value(.text("no")),
                "Whether the provider is the only way to sign in, without codes, links and passkeys."
            )
        case .signInSessionHours:
            Facts(
                .integer(1...720), .value(.integer(12)),
                "Hours after which a user must sign in again. Until then, a sign-in to an app needs only one press of a button."
            )
        case .signInIdleMinutes:
            Facts(
                .integer(5...43_200), .value(.integer(30)),
                "Minutes without a visit after which a user must sign in again: short, for browsers that several people use."
            )
        case .signInPasskeyRoots:
            Facts(
                .text, .absent,
                "A file of certificates (PEM) of device manufacturers, relative to the folder of this file. With it, Postern requests an attestation of new passkeys, "
                    + "and status policies read sign_in.passkey_attested. Some browsers ask the user first."
            )
        case .signInLanguages:
            Facts(
                .text, .absent,
                "A folder of catalogues (nl.json) for languages that are not built in, or in place of one; relative to the folder of this file."
            )
        case .eventsTrustedCertificates:
            Facts(
                .text, .absent,
                "Further certificate authorities (PEM) for event endpoints, besides the system's; relative to the folder of this file."
            )
        case .eventsPrivateReceivers:
            Facts(
                .choice(["no", "yes"]), .value(.text("no")),
                "Whether teams may give their streams (docs/SHARED_SIGNALS.md) receivers at private addresses, and over http: only if you trust all teams with access to your network. With no, Postern sends nothing to such receivers of existing streams."
            )
        case .verificationHours:
            Facts(
                .integer(1...168), .value(.integer(24)),
                "How long the code and the link of a verification are valid: people read their mail once a day."
            )
        case .verificationTries:
            Facts(
                .integer(1...10), .value(.integer(5)),
                "Wrong codes for one message. With 5 messages an hour, a guess in 40,000 succeeds.")
        case .verificationPerInbox:
            Facts(
                .integer(1...100), .value(.integer(5)),
                "Messages of one kind to one mailbox in an hour, in any spelling; beyond it they are refused and none is sent."
            )
        case .verificationPerUser:
            Facts(
                .integer(1...1_000), .value(.integer(10)),
                "Messages for one user in an hour, over all inboxes; beyond it they are refused and none is sent."
            )
        case .verificationPerInstallation:
            Facts(
                .integer(1...1_000_000), .value(.integer(5_000)),
                "Postern's own messages to users in an hour; beyond it they are refused and none is sent. Once half of them are sent, one network may request a hundredth of them."
            )
        case .verificationToStrangers:
            Facts(
                .integer(1...1_000_000), .value(.integer(2_000)),
                "Messages in an hour to people who are not users yet (sign_in.sign_up: open), so that Postern cannot be used to send unwanted mail. Once half of them are sent, "
                    + "one network may request a hundredth of them, and a quarter may go to one domain."
            )
        case .logLevel:
            Facts(
                .choice(["trace", "debug", "info", "notice", "warning", "error"]),
                .value(.text("info")), live: true,
                "One line for each message and reply; no level logs an inbox address.")
        case .logFormat:
            Facts(
                .choice(["text", "json"]), .value(.text("text")),
                "For people and journald; json is for log collectors.")
        }
    }
}
