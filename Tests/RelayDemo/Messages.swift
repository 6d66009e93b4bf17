// The mail of the demonstration, as a shop's server and a person's mail program write it.

import Foundation

enum Messages {
    /// An order confirmation: text and HTML, a picture and a PDF, names and
    /// subject in other scripts.
    static func order(to address: String) -> String {
        """
        From: =?utf-8?Q?Fr=C3=BCchte_=26_S=C3=A4fte?= <orders@juice.example>
        Reply-To: help@juice.example
        To: =?utf-8?B?QW5uYSBNw7xsbGVy?= <\(address)>
        Subject: =?utf-8?Q?Ihre_Bestellung_=E2=80=93_=E6=9E=9C=E6=B1=81_No._42?=
        Date: Sat, 21 Nov 2026 08:00:00 +0000
        Message-ID: <order-42@juice.example>
        List-Unsubscribe: <mailto:unsubscribe@juice.example?subject=orders>, <https://juice.example/u/42>
        List-Unsubscribe-Post: List-Unsubscribe=One-Click
        Disposition-Notification-To: tracking@juice.example
        MIME-Version: 1.0
        Content-Type: multipart/mixed; boundary="outer"

        --outer
        Content-Type: multipart/alternative; boundary="inner"

        --inner
        Content-Type: text/plain; charset=utf-8
        Content-Transfer-Encoding: 8bit

        Guten Tag, danke für Ihre Bestellung. Antworten Sie einfach auf diese Mail.
        --inner
        Content-Type: text/html; charset=utf-8
        Content-Transfer-Encoding: quoted-printable

        <p>Guten Tag,<br>danke f=C3=BCr <b>Ihre Bestellung</b>.</p><img src=3D"cid:logo@juice">
        --inner--
        --outer
        Content-Type: image/png; name="logo.png"
        Content-ID: <logo@juice>
        Content-Transfer-Encoding: base64

        iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==
        --outer
        Content-Type: application/pdf; name*=utf-8''Rechnung%2042.pdf
        Content-Disposition: attachment; filename*=utf-8''Rechnung%2042.pdf
        Content-Transfer-Encoding: base64

        JVBERi0xLjQKMSAwIG9iago8PD4+CmVuZG9iagp0cmFpbGVyPDw+PgolJUVPRgo=
        --outer--

        """
    }

    /// A reply as a mail program writes it: with the inbox in From, signature and quotation.
    static func answer(from inbox: String, to reverse: String, repliesTo id: String) -> String {
        """
        Received: from [192.168.1.23] (anna-laptop.home.example [203.0.113.77]) by smtp.home.example with ESMTPSA; Sat, 21 Nov 2026 09:00:00 +0000
        From: =?utf-8?B?QW5uYSBNw7xsbGVy?= <\(inbox)>
        To: "Früchte & Säfte" <\(reverse)>
        Subject: =?utf-8?Q?Re:_Ihre_Bestellung_=E2=80=93_=E6=9E=9C=E6=B1=81_No._42?=
        Date: Sat, 21 Nov 2026 10:00:00 +0100
        Message-ID: <4F2A-anna-laptop@home.example>
        In-Reply-To: <\(id)>
        References: <\(id)>
        User-Agent: Example Mail 12.3 on anna-laptop
        X-Originating-IP: [203.0.113.77]
        MIME-Version: 1.0
        Content-Type: multipart/alternative; boundary="b1"

        --b1
        Content-Type: text/plain; charset=utf-8
        Content-Transfer-Encoding: quoted-printable

        Bitte liefern Sie erst am Montag. Gr=C3=BC=C3=9Fe, Anna
        --=20
        Anna M=C3=BCller =C2=B7 \(inbox)

        Am 21. November schrieb <\(reverse)=
        >:
        > Guten Tag, danke f=C3=BCr Ihre Bestellung.
        --b1
        Content-Type: text/html; charset=utf-8
        Content-Transfer-Encoding: base64

        \(Data("<p>Bitte liefern Sie erst am <b>Montag</b>.</p><p>-- <br><a href=\"mailto:\(inbox)\">\(inbox.replacingOccurrences(of: "@", with: "&#64;"))</a></p><blockquote>Am 21. November schrieb &lt;\(reverse)&gt;:</blockquote>".utf8).base64EncodedString(options: [.lineLength76Characters]))
        --b1--

        """
    }

    static func thanks(to address: String, repliesTo id: String, references: String) -> String {
        """
        From: =?utf-8?Q?Fr=C3=BCchte_=26_S=C3=A4fte?= <help@juice.example>
        To: <\(address)>
        Subject: =?utf-8?Q?Re:_Ihre_Bestellung_=E2=80=93_=E6=9E=9C=E6=B1=81_No._42?=
        Date: Sat, 21 Nov 2026 09:30:00 +0000
        Message-ID: <help-7@juice.example>
        In-Reply-To: \(id)
        References: \(references)
        Content-Type: text/plain; charset=utf-8
        Content-Transfer-Encoding: 8bit

        Gern, wir liefern am Montag.

        """
    }

    static func plain(from sender: String, to address: String, subject: String) -> String {
        """
        From: \(sender)
        To: \(address)
        Subject: \(subject)
        Date: Sat, 21 Nov 2026 11:00:00 +0000
        Message-ID: <\(subject.lowercased().filter { $0.isLetter })@\(sender.split(separator: "@").last ?? "juice.example")>

        Plain text, nothing more.

        """
    }
}
