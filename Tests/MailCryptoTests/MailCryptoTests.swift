// MailCryptoTests
