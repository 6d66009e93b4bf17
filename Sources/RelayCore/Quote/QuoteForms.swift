// The words and marks with which programs show a quotation, in the languages of these programs.
//
// From the translations of Thunderbird, Roundcube, SOGo, Horde, Evolution, Gmail, Apple Mail,
// Outlook, Yahoo and Zoho, and the public parsers of replies (talon, email_reply_parser, planer).
// Compared in lower case, octet by octet.

import InternetMessage
import Support

enum QuoteForms {
    /// The meaning of a field in a header block above a quotation.
    enum Field: UInt8 {
        case from, date, to, cc, subject, other
    }

    /// The field with this name, which is in lower case and without the colon.
    static func field(_ name: [UInt8]) -> Field? { fields[name] }

    /// Octets of the longest name of a field.
    static let longestField = 40

    /// Whether a word, in lower case, is a verb that ends or opens an attribution.
    static func isVerb(_ word: [UInt8]) -> Bool { verbs.contains(word) }

    /// Whether a word, in lower case, can begin an attribution.
    static func isOpener(_ word: [UInt8]) -> Bool {
        openers.contains(
            word.last.map { ".,".utf8.contains($0) } == true ? Array(word.dropLast()) : word)
    }

    /// Verbs of scripts without spaces, and verbs that programs join to a name. A text may end with
    /// them after any other text.
    static func endsInVerb(_ text: ArraySlice<UInt8>) -> Bool {
        glued.contains { text.hasSuffix($0) }
    }

    /// Whether a word before an address belongs to the attribution, and not to the name.
    static func isNoName(_ word: [UInt8]) -> Bool {
        verbs.contains(word) || openers.contains(word) || others.contains(word)
            || fields[word] != nil
    }

    /// Whether a line between dashes announces another message.
    static func namesMessage(_ words: [[UInt8]]) -> Bool {
        words.contains { word in messages.contains { word.starts(with: $0) } }
    }

    /// Whether a line that ends with a colon begins a forwarded message in the form of Apple Mail.
    static func beginsForward(_ text: [UInt8]) -> Bool { forwards.contains(text) }

    private static func words(_ text: String) -> [[UInt8]] {
        text.utf8.split { $0 == 0x20 || $0 == 0x0A }.map { Array($0) }
    }

    private static func names(_ text: String) -> [[UInt8]] {
        text.utf8.split(separator: UInt8(ascii: ",")).map { name in
            Array(name.drop { $0 <= 0x20 }.reversed().drop { $0 <= 0x20 }.reversed())
        }
    }

    private static let fields: [[UInt8]: Field] = {
        var fields: [[UInt8]: Field] = [:]
        let lists: [(String, Field)] = [
            (otherFields, .other), (carbonCopies, .cc), (recipients, .to), (subjects, .subject),
            (dates, .date), (senders, .from),
        ]
        for (text, field) in lists {
            for name in names(text) { fields[name] = field }
        }
        return fields
    }()

    private static let verbs = Set(words(verbWords))
    private static let openers = Set(words(openerWords))
    private static let others = Set(words(otherWords))
    private static let messages = words(messageWords)
    private static let glued = words(gluedVerbs)
    private static let forwards = Set(names(forwardLines))

    /// Names of the field for the sender.
    private static let senders = """
        absender, afsender, afzender, avsender, da, dari, daripada, de, de la, eus, expeditor, expeditorul, fan,
        feladó, feladó, fra, frá, frå, från, from, frá, frå, från, gönderen, gönderici, gửi từ, gönderen,
        gönderici, gửi từ, keneltä, keneltä, kimdan, kimden, kimdən, lähettäjä, lähettäjä, mittente, nadawca, nga,
        no, nork, nuo, od, oddi wrth, odesílatel, odesílatel, pengirim, remitent, remitente, saatja, sendanto,
        sender, seolaí, seolaí, siuntėjas, siuntėjas, šalje, şandyar, van, von, vun, şandyar, šalje, από,
        αποστολέας, αποστολέας, από, ад, від, від кого, кімнен, од, от, от кого, отправитель, ուղարկող, מאת, از,
        المرسل, دىن, من, प्रेषक, ಇಂದ, പ്രേഷിതന്‍, ผู้ส่ง, გამგზავნი, 보낸 사람, អ្នកផ្ញើ, 发件人, 寄件人, 寄件者, 差出人, 発信者,
        送信元, 送信者, 보낸 사람
        """

    /// Names of the field for the date.
    private static let dates = """
        dags, dagsetning, data, dată, date, datë, dato, datum, datums, datë, dată, dáta, dátum, deiz, dîrok,
        dyddiad, dáta, dátum, dîrok, elküldve, elküldve, enviada em, enviado, enviado el, enviado em, envoyé,
        envoyé le, envoyé, envoyé le, fecha, gesendet, gönderilen, gönderilen, inviato, kuupäev, kuupäev,
        lähetetty, lähetetty, ngày, ngày, odesláno, odesláno, odoslané, odoslané, päivämäärä, päiväys,
        poslano, pvm, päivämäärä, päiväys, sana, sendt, sent, skickat, tanggal, tann, tarih, tarikh, tarix, trimis,
        verstuurd, verzonden, wysłano, ημερομηνία, ημερομηνία, στάλθηκε, στάλθηκε, відправлено, дата, датум,
        изпратено, күні, отправлено, ամսաթիվ, נשלח, תאריך, التاريخ, تاریخ, تم الإرسال, تم الإرسال, چېسلا, दिनांक,
        ದಿನಾಂಕ, തീയതി, วันที่, თარიღი, 날짜, 보낸 날짜, កាលបរិច្ឆេត, 发送时间, 寄件日期, 日付, 日期, 送信日時, 날짜, 보낸 날짜
        """

    /// Names of the field for the recipients.
    private static let recipients = """
        a, aan, adresat, adresát, adresát, alıcı, an, à, către, chuig, címzett, címzett, către, da, derbyniwr,
        destinatar, destinatari, destinatario, destinatario(a), destinatarul, do, gavėjas, gavėjas, i, kam, kenelle,
        kepada, kime, kimga, kimə, komu, modtager, mottagare, mottaker, người nhận, người nhận, nori, oan,
        ontvanger, pa, para, penerima, për, pour, pre, prima, për, recipient, ricevanto, saaja, standyar, til, till,
        to, un, vastaanottaja, za, à, παραλήπτης, παραλήπτης, προς, до, за, каму, кому, кімге, примач, ստացող, אל,
        إلى, المستقبل, إلى, به, غا, प्रती, ಗೆ, സ്വീകര്‍ത്താവ്, ผู้รับ, ვის, 받는 사람, អ្នកទទួល, 宛先, 收件人, 收件者,
        送信先, 받는 사람
        """

    /// Names of the field for the recipients of copies.
    private static let carbonCopies = """
        afrit, bcc, bilgi, cc, copi, copia, copia (cc), copie, copie (cc), copie à, copie à, copy, cópia, cópia, dw,
        in copia a, karbon kopya, koopia, kopi, kopi til, kopia, kopie, kopie (cc), kopija, kopio, kopiraj,
        kopiya karbon, kopya, kópia, kp, kópia, lampiran, másolat, másolatot kap, másolat, másolatot kap, nusxasi,
        nüsxə, nüsxə, đồng kính gửi, đồng kính gửi, κοιν., κοινοποίηση, κοινοποίηση, копие, копие до, копирај,
        копия, копія, көшірме, цц, לידיעה, מכותב, עותק, رونوشت, قۇشۇمچە, نسخة, نسخة إلي, نسخة إلي, प्रत, คัดลอก,
        ასლი, 참조, 写し(cc), 副本, 抄送, 참조
        """

    /// Names of the field for the subject.
    private static let subjects = """
        aihe, assumpte, assunto, asunto, asuntu, ábhair, ämne, betreff, efni, emne, evni, gaia, judul, konu, mavzu,
        mijar, mövzu, mövzu, naslov, objet, oggetto, onderwerp, pealkiri, predmet, předmět, pwnc, předmět, re,
        subiect, subiectul, subject, subjecto, subjek, subjekt, sujed, sujet, tárgy, tema, temat, temats, temo,
        testun, tiêu đề, titill, tiêu đề, tárgy, ûnderwerp, zadeva, ábhair, ämne, ûnderwerp, θέμα, θέμα,
        заглавие, наслов, относно, тақырыбы, тема, тэма, վերնագիր, נושא, الموضوع, تىما, موضوع, विषय, ವಿಷಯ, വിഷയം,
        หัวจดหมาย, სათაური, 제목, ចំណងជើង, 主旨, 主题, 件名, 제목
        """

    /// Names of other fields.
    private static let otherFields = """
        anlagen, antwoord aan, antwort an, atbildēt uz, atbildēt uz, atsakyti, attachments, importance, kuruluş,
        kuruluş, mailed-by, membalas ke, message-id, odgovori, odgovori na, odpovedať-pre, odpovedať-pre,
        odpoveď na, odpoveď na, odpověď na, odpověď na, odpowiedź do, odpowiedź-do, odpowiedź do, odpowiedź-do,
        organisaatio, organisasi, organisasjon, organisation, organizace, organizacija, organización, organización,
        organizacja, organização, organization, organizație, organização, organizație, organizácia, organizācija,
        organizzazione, organizácia, organizācija, pièces jointes, priority, răspunde la, răspuns către, reply-to,
        responder a, responder-a, responder-para, répondre à, rispondi a, répondre à, răspunde la, răspuns către,
        sefydliad, signed-by, skipulagseining, svar til, svar-til, svar-till, svara till, svara-til, szervezet,
        vastaus, válaszcím, válaszcím, wichtigkeit, yanıt adresi, yanıtlama adresi, ymateb i, відповісти,
        жауап беру, кому відповісти, одговори, организация, организација, організація, ответ-кому, ответить, ұйым,
        ұйым, אירגון, השב, المنظمة, ردً على, 公司, 回覆, 回覆帳號, 組織, 返信先
        """

    /// The verb `wrote`.
    private static let verbWords = """
        wrote writes sent said schrieb schreibt schrieben geschrieben schreift écrit écrivait escribió escribio escrito
        escribiu scrit scritto scrive scrivè scribite escreveu escreveu-lhe escriure escriguèt escribía schreef
        geschreven verzond skreau skryf skrev skriver skreiv skrifaði skrivaði skribis kirjoitti kirjutas rašė rakstīja
        napisał napisał(a) napisała pisze napsal napsal(a) napsala píše napísal napísal(a) napísala napisao napisao/la
        napisao(la) napisala napisal napisal(a) piše írta scris idatzi shkroi shkruar yazdı yazmış yazıb yozgan έγραψε
        написа написал написал(а) написала пишет писал писал(а) писала напісаў пише написав написала(в) напиша գրեց.
        գրել כתב כתבה :כתב كتب كتبت نوشت نوشته menulis viết დაწერა ysgrifennodd scríobh scríobhann nivîsî skrivet ubhale
        napisaŭ लिहिले लिहीले লিখিছিল লিখেছিলেন লিখেছেন लिखा લખાયેલ ਲਿਖਿਆ వ్రాశారు എഴുതിയിരിക്കുന്നു ಬರೆದಿದ್ದಾರೆ ලඳි
        يازدىكى 작성 쓴 quoting zitat cituji citát citat citando citeren citerar siterer citēju cytowanie lainaus alıntı
        цитирую цитую citiram idézet posted şunu följande
        """

    /// The verb without a space before it.
    private static let gluedVerbs = """
        写道 写于 寫道 寫到 提到 作成 작성 님이 쓴 のメール のメッセージ 書きました 引用 引述 เขียนว่า เขียน បាន​សរសេរ សរសេរ מאת wrote writes כתב
        """

    /// Words that begin an attribution.
    private static let openerWords = """
        on am le lo el il em op dnia dne dňa den d på þann la ils më vào 在 於 pada tanggal στις σε на в у v u o a à af ar
        at je dana дана în in d'an/ar di ditën днём tann ngo- lúc ngày lör mån tis ons tor fre sön mon tue wed thu fri
        sat sun monday tuesday wednesday thursday friday saturday sunday montag dienstag mittwoch donnerstag freitag
        samstag sonntag mo mi do fr sa so пн вт ср чт пт сб вс lun mar mer jeu ven sam dim mié jue vie sáb dom seg ter
        qua qui sex pon wto śro czw pią sob nie wt śr pt niedz po út st čt pá ne ma wo vr za zo to ke pe su quoting
        zitat posted citat w gio sab ที่ เมื่อ ในวันที่ kl tir man lør søn ti
        """

    /// Words between the date and the name.
    private static let otherWords = """
        am pm uhr um at à alle às om kl kl. klo at, by from von de from: и от a.m. p.m. gmt utc cet cest est edt pst pdt
        mst cst via en/na ο/η user użytkownik пользователь používateľ odesílatel oseba mitent der die das jan feb mar
        apr may jun jul aug sep sept oct nov dec january february march april june july august september october
        november december januar februar märz mai juni juli oktober dezember lietotājs heeft je il
        """

    /// Beginnings of words that mean a message, an original message or a forwarded one.
    private static let messageWords = """
        message original nachricht ursprüng weitergeleitet bericht oorspronk doorgestuurd mensaje mensagem messaggio
        missatge mensaxe mesaj mesazh mesej mesaĝo meddel melding besked viesti edelleen alkuper wiadomo zpráv zprava
        správ üzenet eredeti levél poruk sporočil mezu kemennad kiri courriel neges berjocht originál izvorn původn
        pôvodn paziņ ziņoj vēstul laiškas pranešim pesan peyama thư boð skilaboð bréf ileti i̇leti iletilen özgün μήνυμα
        паведамл сообщен порак писмо письм повідомл лист хат הודעה الرسالة پیام संदेश ಸಂದೇಶ സന്ദേശം ข้อความ შეტყობინება
        សារ メッセージ 訊息 邮件 郵件 信件 回复的原 回復的原 原始邮件 原始郵件
        메시지 forwarded replied reply fwd přeposl preposl továbbított przekazan oryginaln videresend
        vidarebefordra mejl válasz хабарлама məktub xat հաղորդ teachtaireacht preusmjer proslij
        """

    /// Lines of Apple Mail above a header block, without the colon.
    private static let forwardLines = """
        begin forwarded message, forwarded message, anfang der weitergeleiteten nachricht, begin doorgestuurd bericht,
        début du message réexpédié, inicio del mensaje reenviado, inizio messaggio inoltrato,
        início da mensagem encaminhada, início da mensagem reencaminhada, początek przekazywanej wiadomości,
        start på videresendt besked, továbbított levél kezdete, vidarebefordrat mejl, videresendt melding,
        välitetty viesti alkaa, započni proslijeđenu poruku, začiatok preposlanej správy, začátek přeposílané zprávy,
        începe mesajul redirecționat, i̇leti başlangıcı, начало переадресованного сообщения,
        початок листа що пересилається, 転送されたメッセージ, 下面是被转发的邮件, 开始转发邮件, 이하 전달된 메시지
        """
}

extension ArraySlice<UInt8> {
    func hasSuffix(_ other: [UInt8]) -> Bool {
        count >= other.count && suffix(other.count).elementsEqual(other)
    }
}
