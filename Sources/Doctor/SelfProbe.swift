// The doctor's own reply and bounce, sent through the running Postfix and milter, and captured
// before delivery.

import Accounts
import Foundation
import InternetMessage
import Mail
import PosternConfiguration
import PostfixSetup
import Relay
import RelayCore
import Support

/// Sends test mail through the relay. Blocks. Changes no user's mail, no store and no setting.
package struct SelfProbe {
    /// The route of the test mail.
    package struct Route: Sendable {
        /// The addresses at which other servers deliver mail. They are tried first, because Postfix
        /// treats the probe as it treats their mail.
        package let doors: [IncomingDoor]
        /// The address at which Postfix also accepts mail.
        package let host: String
        package let port: UInt16
        /// The port on 127.0.0.1 to which Postfix sends the captured mail at the relay domain.
        package let capturePort: UInt16
        /// Seconds that the mail may take.
        package let timeout: Double

        package init(
            doors: [IncomingDoor] = [], host: String, port: UInt16, capturePort: UInt16,
            timeout: Double
        ) {
            self.doors = doors
            self.host = host
            self.port = port
            self.capturePort = capturePort
            self.timeout = timeout
        }
    }

    /// The result of the probe.
    package struct Outcome: Sendable {
        package let checks: [Check]
        /// Whether all messages arrived. Otherwise some may still be in the queue.
        package let isFinished: Bool
    }

    private let identity: ProbeIdentity
    private let tokens: TokenMint
    private let route: Route
    /// Seconds since 1970.
    private let now: Int64
    /// Part of every message, so that messages of an earlier probe are not mistaken for this one's.
    private let nonce: String

    /// - Parameter nonce: random letters and digits.
    /// - Returns: nil if the keys of the installation cannot be used.
    package init?(
        _ configuration: Configuration, keys: KeyRing, route: Route, now: Int64, nonce: String
    ) {
        guard let keys = TokenKeys(keys.token), let domain = configuration.relayDomains.first else {
            return nil
        }
        identity = ProbeIdentity(keys: keys, domain: domain)
        tokens = TokenMint(keys: keys)
        self.route = route
        self.now = now
        self.nonce = nonce
    }

    /// An address at the relay domain whose mail is captured, to find out where Postfix sends such
    /// mail.
    package static func address(at domain: String) -> String { "postern-doctor-inbox@\(domain)" }

    private var reverse: AddrSpec {
        AddrSpec(
            localPart: tokens.reverse(account: ProbeIdentity.account, correspondent: identity.team)
                .localPart,
            domain: identity.domain)
    }
    private var relay: AddrSpec { identity.relayAddress(now: now) }

    /// Whether an address belongs to the probe.
    package func isProbes(_ address: String) -> Bool {
        let address = address.lowercased()
        if [identity.team, identity.inbox, identity.author, relay].contains(where: {
            $0.wireForm.lowercased() == address
        }) {
            return true
        }
        // Reverse addresses and return paths that the milter has not rewritten.
        guard address.hasSuffix("@" + identity.domain),
            case .token(let token) = tokens.read(
                String(address.dropLast(identity.domain.count + 1)))
        else { return false }
        return token.account == ProbeIdentity.account
    }

    /// Sends both messages, waits, and evaluates the results.
    package func run() -> Outcome {
        let inbox = identity.inbox.wireForm.lowercased()
        let place: CaptureServer
        do {
            place = try CaptureServer(port: route.capturePort) { [self] address in
                address.lowercased() == inbox ? .refuse : isProbes(address) ? .take : .later
            }
        } catch {
            return Outcome(
                checks: [
                    .warning(
                        .probe,
                        "no reply and no bounce was sent: port \(route.capturePort), where Postfix sends undeliverable mail, cannot be listened on (\(error))",
                        remedy:
                            "run \(.diagnose) as root, and one at a time; --skip probe skips this part"
                    )
                ], isFinished: true)
        }
        defer { place.stop() }
        let letter = ProbeLetter(identity: identity, nonce: nonce, now: now)
        // Some servers require that a sender's domain exists, and the test user's does not. So the
        // team's address is tried too.
        let reply = probe(
            from: [identity.author, identity.team], to: reverse, letter.reply(to: reverse), place,
            letter.isReply)
        // If the server cannot be reached for the reply, the second message cannot be sent either.
        let bounce =
            reply.result.isUnreachable
            ? reply
            : probe(from: [identity.team], to: relay, letter.forward(to: relay), place) {
                letter.isReport($0) || letter.isForward($0, to: relay)
            }
        let judgement = ProbeJudgement(
            identity: identity, reverse: reverse, relay: relay, helo: letter.helo)
        if case .unreachable(let why) = reply.result {
            return Outcome(
                checks: [ProbeJudgement.unreachable("\(route.host):\(route.port)", why)],
                isFinished: true)
        }
        var checks = [judgement.reply(reply.result), judgement.bounce(bounce.result)]
        if reply.offersDSN || bounce.offersDSN { checks.append(ProbeJudgement.offersDSN) }
        if place.otherRecipientCount > 0 {
            checks.append(
                .warning(
                    .parkedMail,
                    "mail for \(place.otherRecipientCount) recipients waits in Postfix's queue, as no milter rewrote it",
                    remedy:
                        "it came in while smtpd_milters was not in force: \(.listQueue) shows it, \(.sendQueue) sends it"
                ))
        }
        return Outcome(
            checks: checks, isFinished: reply.result.isArrival && bounce.result.isArrival)
    }

    /// - Parameter senders: tried in order until Postfix accepts one.
    private func probe(
        from senders: [AddrSpec], to recipient: AddrSpec, _ message: [UInt8],
        _ place: CaptureServer,
        _ isIt: (CapturedMessage) -> Bool
    ) -> (result: ProbeResult, offersDSN: Bool) {
        for door in route.doors {
            // If Postfix refuses mail from outside there, for example for its HELO name, the
            // address for this machine's own mail is tried.
            let found = probe(by: door, from: senders, to: recipient, message, place, isIt)
            switch found.result {
            case .arrived, .neverCame: return found
            case .unreachable, .notTaken: continue
            }
        }
        return probe(
            by: IncomingDoor(host: route.host, port: route.port), from: senders, to: recipient,
            message, place, isIt)
    }

    private func probe(
        by door: IncomingDoor, from senders: [AddrSpec], to recipient: AddrSpec, _ message: [UInt8],
        _ place: CaptureServer,
        _ isIt: (CapturedMessage) -> Bool
    ) -> (result: ProbeResult, offersDSN: Bool) {
        let submission = SMTPSubmission(
            host: door.host, port: door.port, helo: ProbeLetter.helo(nonce), timeout: route.timeout,
            dataTimeout: route.timeout)
        var refusal = ProbeResult.neverCame
        for sender in senders {
            do throws(SubmissionFailure) {
                let receipt = try submission.send(
                    from: sender, to: InboxAddress(recipient), message: message)
                let found = place.wait(seconds: route.timeout) { $0.first(where: isIt) }
                return (found.map { .arrived($0) } ?? .neverCame, receipt.keywords.contains("DSN"))
            } catch {
                if case .temporary(let temporary) = error, temporary.stage == .connection {
                    return (.unreachable(temporary.detail), false)
                }
                refusal = .notTaken("\(error)")
                guard case .permanent(let permanent) = error,
                    permanent.stage == .mail || permanent.stage == .recipient
                else {
                    break
                }
            }
        }
        return (refusal, false)
    }
}

/// The result of one message.
enum ProbeResult: Sendable {
    case arrived(CapturedMessage)
    /// No server accepts mail there; the text is the reason.
    case unreachable(String)
    /// Postfix refused the message; the text is the reason.
    case notTaken(String)
    case neverCame

    var isArrival: Bool { if case .arrived = self { true } else { false } }
    var isUnreachable: Bool { if case .unreachable = self { true } else { false } }
}
