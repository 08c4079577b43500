import { defineWords } from '../../i18n/words'

export const words = defineWords({
  title: { zh: '项目', en: 'Projects' },
  create: { zh: '创建项目', en: 'Create project' },
  enter: { zh: '进入', en: 'Enter' },
  queue: { zh: '默认队列', en: 'Default queue' },
  quota: { zh: '配额', en: 'Quota' },
  none: { zh: '无', en: 'None' },
  ready: { zh: '就绪', en: 'Ready' },
  deletes: { zh: '项目的配额会被取消，命名空间和其中的对象保留。', en: 'Its quota goes away; the namespace and what is in it stay.' },
})
