// MailCrypto
