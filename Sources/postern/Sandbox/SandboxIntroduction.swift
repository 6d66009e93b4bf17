// The output of postern sandbox: at its start, and for each message and each refusal.

import Decisions
import Foundation
import Rehearsal
import Support

struct SandboxIntroduction {
    private let facts: SandboxFacts

    init(_ facts: SandboxFacts) { self.facts = facts }

    /// A line for a terminal.
    static func line(_ news: Sandbox.News) -> String {
        switch news {
        case .mail(let mail):
            let subject = mail.subject.withoutControls(limit: 100)
            let code = mail.code.map { "code \($0), " } ?? ""
            return
                "mail \(mail.number) to \(mail.recipient.withoutControls(limit: 120)): \(code)\(subject)"
        case .refusal(let text): return "refused \(text.withoutControls(limit: 400))"
        }
    }

    /// Lines that a user can paste unchanged.
    var text: String {
        let jane = facts.users.first { $0.sub != nil }
        let width = (CannedResponse.subjects.map(\.name.utf8.count).max() ?? 0) + 2
        let subjects = CannedResponse.subjects.map { subject in
            "  " + subject.name.padding(toLength: width, withPad: " ", startingAt: 0)
                + subject.purpose
        }
        let users = facts.users.map { user in
            let uses = user.address.map { "uses the app: \($0)" } ?? "has not signed in yet"
            return "  \(user.user)  \(user.inbox)  \(uses)"
        }
        return """
            Postern listens on \(facts.url). Everything in it is deleted when it ends (Ctrl-C).

              URL=\(facts.url)
              KEY=\(facts.key)
              CLIENT_ID=\(facts.clientID)
              CLIENT_SECRET=\(facts.clientSecret)
              SUB=\(jane?.sub ?? "")
              ADDRESS=\(jane?.address ?? "")
              SMTP=\(facts.smtp)

            Mail, sign-in codes and refused requests are lines here, and on the page \(facts.url)/sandbox.

            Sign-in: any OpenID Connect library, with the issuer $URL and a redirect URI of
            \(facts.redirectURIs.map { "  \($0)" }.joined(separator: "\n"))
            On 127.0.0.1 the port may be any. A page without a backend is the public app \(facts.pageClientID), at
            \(facts.pageRedirectURIs.map { "  \($0)" }.joined(separator: "\n"))
            Users:
            \(users.joined(separator: "\n"))
            Any other address that is entered becomes a new user.

            A decision:

              curl -s $URL/v1/decisions -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' \\
                -d '{"event": "sign_in", "client_id": "\(facts.clientID)", "sub": "'$SUB'"}'

            Mail to jane, and her answer:

              N=$(curl -s $URL/sandbox/mail -H 'Content-Type: application/json' \\
                -d '{"from": "support@\(facts.source)", "to": "'$ADDRESS'", "subject": "Hello", "text": "Hello!"}' | jq '.mails[0]')
              curl -s $URL/sandbox/mail -H 'Content-Type: application/json' -d '{"reply_to": '$N', "text": "Hello, too!"}'

            These subjects get a fixed decision, whatever the policy says:

            \(subjects.joined(separator: "\n"))
            """
    }
}
