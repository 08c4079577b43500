import { defineWords } from '../i18n/words'

export const words = defineWords({
  takeOver: { zh: '应用到表单', en: 'Take over into the form' },
})
